#include "reward/reward_program.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::reward {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMomentToEnd(1000);

Process::Clock::time_point after(Process::Clock::duration time) {
  return Process::Clock::now() + time;
}

Process::Clock::time_point deadline_of(double seconds) {
  constexpr double kMost = 1e8;  // beyond what the clock's type holds lies nothing useful
  return after(std::chrono::duration_cast<Process::Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kMost))));
}

std::string shortened(std::string_view line) {
  constexpr size_t kShown = 200;
  std::string text = text::mend_utf8(line.substr(0, kShown + 4)).text;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (text.size() <= kShown) return text;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

std::string in_words(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return shortened(text);
}

}  // namespace

RewardProgram::RewardProgram(RewardOptions options) : options_(std::move(options)) {
  if (options_.command.empty()) fail(ErrorKind::config, "the command is empty; name a program, as python3");
  resolve_program(options_.command.front());
}

RewardProgram::~RewardProgram() = default;

void RewardProgram::broken(std::string_view what) {
  process_->kill_group();
  const std::string tail = process_->stderr_tail();
  process_.reset();
  fail(ErrorKind::protocol, "reward program `{}`: {}{}{}", in_words(options_.command), what,
       tail.empty() ? "; it wrote nothing to stderr" : "; the end of its stderr:\n", tail);
}

template <typename Check>
auto RewardProgram::checked(Check check) {
  try {
    return check();
  } catch (const Error& error) {
    broken(fmt::format("{}: its line `{}` {}", where_, shortened(line_), error.what()));
  }
}

void RewardProgram::send(const std::string& line) {
  if (line.size() > Process::kLongestLine) {
    broken(fmt::format("a completion and its prompt take {} bytes as a line; the protocol has at most {}",
                       line.size(), Process::kLongestLine));
  }
  process_->send(line);
}

bool RewardProgram::read_line(Clock::time_point deadline) {
  const bool persistent = options_.mode == RewardMode::persistent;
  switch (process_->next_line(line_, deadline, options_.interrupted, persistent)) {
    case Process::Event::line:
      return true;
    case Process::Event::end:
      return false;
    case Process::Event::input_refused:
      // One that ended has said why, in its last lines or by its status; one that still runs will never see
      // the end of the batch.
      if (process_->wait_exit(after(kMomentToEnd))) return read_line(deadline);
      broken(where_ + ": it closed its standard input before it had read the batch");
    case Process::Event::too_long:
      broken(fmt::format("{}: a line of its answer is longer than {} bytes", where_, Process::kLongestLine));
    case Process::Event::late:
      broken(fmt::format("{}: no answer within reward_timeout_seconds = {}{}", where_,
                         options_.timeout_seconds, persistent ? " (does it flush each line?)" : ""));
    case Process::Event::interrupted:
      process_.reset();
      fail(ErrorKind::interrupted, "interrupted while the reward program ran");
  }
  return false;
}

void RewardProgram::need_line(Clock::time_point deadline, std::string_view due) {
  if (read_line(deadline)) return;
  const auto status = process_->wait_exit(std::min(deadline, after(kMomentToEnd)));
  broken(fmt::format("{}: {} where {} is due", where_,
                     status ? "it ended with " + status->text() : std::string("it closed its output"), due));
}

void RewardProgram::check_exit(Clock::time_point deadline) {
  const auto status = process_->wait_exit(deadline);
  if (!status) {
    broken(fmt::format("{}: it answered, but still ran after reward_timeout_seconds = {}", where_,
                       options_.timeout_seconds));
  }
  if (!status->good()) broken(fmt::format("{}: it ended with {}", where_, status->text()));
}

void RewardProgram::begin(Clock::time_point deadline) {
  try {
    process_ = std::make_unique<Process>(options_.command);
  } catch (const Error& error) {
    throw Error(ErrorKind::protocol, error.what())
        .within("reward program `" + in_words(options_.command) + "`");
  }
  if (options_.mode == RewardMode::oneshot) return;
  where_ = "greeting";
  send(greeting_line());
  need_line(deadline, "its greeting");
  checked([&] { check_greeting(line_); });
}

void RewardProgram::score_persistent(std::span<const RewardRequest> requests, Clock::time_point deadline,
                                     std::vector<Reward>& rewards) {
  const int64_t batch = batches_++;
  const auto count = static_cast<int64_t>(requests.size());
  where_ = fmt::format("batch {}", batch);
  for (int64_t i = 0; i < count; ++i) {
    send(request_line(requests[static_cast<size_t>(i)], BatchPlace{batch, i}));
  }
  send(batch_end_line(batch));
  for (int64_t i = 0; i < count; ++i) {
    where_ = fmt::format("batch {}, answer {} of {}", batch, i + 1, count);
    need_line(deadline, "an answer");
    rewards.push_back(checked([&] { return parse_reward(line_, BatchPlace{batch, i}, options_.judged); }));
  }
  where_ = fmt::format("end of batch {}", batch);
  need_line(deadline, "the echo of its end");
  checked([&] { check_batch_end(line_, batch); });
  if (process_->more_output()) {
    need_line(deadline, "nothing");
    broken(fmt::format("{}: its line `{}` belongs to no batch; one answer a completion", where_,
                       shortened(line_)));
  }
}

void RewardProgram::score_oneshot(std::span<const RewardRequest> requests, Clock::time_point deadline,
                                  std::vector<Reward>& rewards) {
  const int64_t batch = batches_++;
  where_ = fmt::format("batch {}", batch);
  for (const RewardRequest& request : requests) send(request_line(request, std::nullopt));
  process_->end_input();
  for (size_t i = 0; i < requests.size(); ++i) {
    where_ = fmt::format("batch {}, answer {} of {}", batch, i + 1, requests.size());
    need_line(deadline, "an answer");
    rewards.push_back(checked([&] { return parse_reward(line_, std::nullopt, options_.judged); }));
  }
  where_ = fmt::format("end of batch {}", batch);
  if (read_line(deadline)) {
    broken(fmt::format("{}: its line `{}` comes behind the last answer; one answer a completion", where_,
                       shortened(line_)));
  }
  check_exit(deadline);
  process_.reset();
}

std::vector<Reward> RewardProgram::score(std::span<const RewardRequest> requests) {
  std::vector<Reward> rewards;
  if (requests.empty()) return rewards;
  const Clock::time_point deadline = deadline_of(options_.timeout_seconds);
  if (!process_) begin(deadline);
  rewards.reserve(requests.size());
  if (options_.mode == RewardMode::persistent) {
    score_persistent(requests, deadline, rewards);
  } else {
    score_oneshot(requests, deadline, rewards);
  }
  return rewards;
}

void RewardProgram::finish() noexcept {
  if (!process_) return;
  process_->end_input();
  process_->wait_exit(after(kMomentToEnd));
  process_->kill_group();
  process_.reset();
}

}  // namespace retro::reward
