#include "run/observe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "run/rfc3339.h"
#include "text/utf8.h"

namespace retro::run {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRunRecord = "{\"v\":1,\"type\":\"run\"";
constexpr std::string_view kAnyRecord = "{\"v\":1,\"type\":\"";
constexpr std::string_view kCall = "retrograd_observe(";
constexpr std::string_view kCallEnd = ");\n";
constexpr std::string_view kPageMark = "<meta name=\"generator\" content=\"retrograd observe\">";

const char* name_of(SkipReason reason) {
  constexpr const char* kNames[] = {"",         "truncated",     "zero_signal", "judge_dropped",
                                    "unscored", "update_skipped"};
  return kNames[static_cast<size_t>(reason)];
}

Json skip_value(SkipReason reason) {
  return reason == SkipReason::none ? Json(nullptr) : Json(name_of(reason));
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Held as long as a run writes into a folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) {
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) fail(ErrorKind::io, "{}: {}", folder.string(), std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd_);
      fail(ErrorKind::io, "{}: another run writes there", folder.string());
    }
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Calls `visit` with each whole line, without its end; returns the bytes of those lines.
template <typename Visit>
size_t for_each_line(std::string_view text, Visit visit) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    visit(text.substr(begin, end - begin));
  }
  return begin;
}

/// Takes up an observe.jsonl: cuts a line that was torn off, writes observe.js anew from it and returns the
/// number of segments. A file that is not of this kind is left as it is: Error(config).
int64_t take_up(const fs::path& jsonl, const fs::path& script) {
  OutputFile calls(script);
  int64_t segments = 0;
  if (fs::exists(jsonl)) {
    size_t whole = 0, size = 0;
    {
      const MappedFile file(jsonl);
      const std::string_view text = text_of(file);
      size = text.size();
      if (size > 0 && !text.starts_with(kAnyRecord.substr(0, std::min(size, kAnyRecord.size())))) {
        fail(ErrorKind::config, "{}: is not a file of this kind and is left as it is", jsonl.string());
      }
      whole = for_each_line(text, [&](std::string_view line) {
        segments += line.starts_with(kRunRecord) ? 1 : 0;
        calls.write(kCall);
        calls.write(line);
        calls.write(kCallEnd);
      });
    }
    if (whole < size) fs::resize_file(jsonl, whole);
  }
  calls.commit();
  return segments;
}

void write_page(const fs::path& page) {
  if (fs::exists(page)) {
    const MappedFile old(page);
    if (text_of(old) == kObservePage) return;
    if (!old.bytes().empty() && text_of(old).find(kPageMark) == std::string_view::npos) {
      fail(ErrorKind::config, "{}: is another page and is left as it is", page.string());
    }
  }
  write_file(page, kObservePage);
}

}  // namespace

struct Observer::Impl {
  ObserveOptions options;
  Warn warn;
  int64_t segment = 0;
  std::set<int64_t> prompts;  // written in this segment
  std::optional<FolderLock> lock;
  std::optional<AppendFile> jsonl, script;

  // A disk that does not keep up must neither stop the run nor fill its memory.
  static constexpr size_t kMostQueued = size_t{256} << 20;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;  // lines, with their ends
  size_t queued = 0;              // bytes
  bool closing = false;
  std::string failure;  // why the writer gave up
  std::thread writer;

  void open();
  void write_lines();
  void close();
};

void Observer::Impl::open() {
  fs::create_directories(options.directory);
  lock.emplace(options.directory);
  const fs::path lines = options.directory / "observe.jsonl", calls = options.directory / "observe.js";
  segment = take_up(lines, calls) + 1;
  write_page(options.directory / "index.html");
  jsonl.emplace(lines);
  script.emplace(calls);
}

void Observer::Impl::write_lines() {
  std::unique_lock held(mutex);
  for (;;) {
    changed.wait(held, [&] { return closing || !queue.empty(); });
    if (queue.empty()) return;
    std::deque<std::string> taken;
    taken.swap(queue);
    queued = 0;
    held.unlock();
    std::string lines, calls;
    for (const std::string& line : taken) {
      lines += line;
      calls.append(kCall).append(line, 0, line.size() - 1).append(kCallEnd);
    }
    std::string problem;
    try {
      jsonl->append(lines);
      script->append(calls);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    held.lock();
    if (problem.empty()) continue;
    failure = problem;
    return;
  }
}

void Observer::Impl::close() {
  if (!writer.joinable()) return;
  {
    const std::lock_guard held(mutex);
    closing = true;
  }
  changed.notify_one();
  writer.join();
}

Observer::Observer() = default;
Observer::Observer(Observer&&) noexcept = default;
Observer& Observer::operator=(Observer&&) noexcept = default;

Observer::Observer(const ObserveOptions& options, const ObservedRun& run, Warn warn)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->warn = std::move(warn);
  try {
    impl_->open();
    impl_->writer = std::thread([impl = impl_.get()] { impl->write_lines(); });
  } catch (const std::exception& error) {
    turn_off(error.what());
    return;
  }
  write({{"type", "run"},
         {"algorithm", run.algorithm},
         {"document", run.document},
         {"model", run.model},
         {"updates", run.updates},
         {"resumed_from_update", or_null(run.resumed_from_update)}});
}

Observer::~Observer() {
  if (!impl_) return;
  impl_->close();
  if (!impl_->failure.empty()) turn_off(impl_->failure);
}

void Observer::turn_off(const std::string& why) {
  const std::unique_ptr<Impl> gone = std::move(impl_);
  gone->close();
  if (gone->warn) gone->warn(why + "; [observe] is off, the run goes on");
}

void Observer::write(Json record) {
  if (!impl_) return;
  // The keys that every record has stand in front, so that a reader can tell records apart without parsing.
  Json line = {{"v", 1}, {"type", record["type"]}, {"time", rfc3339_now()}, {"segment", impl_->segment}};
  record.erase("type");
  line.update(record);
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string failure;
  {
    const std::lock_guard held(impl_->mutex);
    failure = impl_->failure;
    if (failure.empty() && impl_->queued + text.size() > Impl::kMostQueued) {
      failure = impl_->options.directory.string() + ": the disk does not keep up";
    }
    if (failure.empty()) {
      impl_->queued += text.size();
      impl_->queue.push_back(std::move(text));
    }
  }
  if (failure.empty()) {
    impl_->changed.notify_one();
  } else {
    turn_off(failure);
  }
}

bool Observer::wants(int64_t update) const {
  return impl_ && update % impl_->options.every == 0;
}

void Observer::prompt(int64_t index, const Json& messages) {
  if (!impl_ || !impl_->prompts.insert(index).second) return;
  Json shown = Json::array();
  for (const Json& message : messages) {
    shown.push_back({{"role", message.at("role")},
                     {"content", cut_text(message.at("content").get_ref<const std::string&>(),
                                          impl_->options.max_text_chars)}});
  }
  write({{"type", "prompt"}, {"key", fmt::format("p:{}", index)}, {"messages", std::move(shown)}});
}

void Observer::rollout(const ObservedRollout& rollout) {
  if (!impl_) return;
  Json record = {{"type", "rollout"},
                 {"update", rollout.update},
                 {"group", rollout.group},
                 {"member", rollout.member},
                 {"prompt", fmt::format("p:{}", rollout.prompt)},
                 {"completion", cut_text(rollout.completion, impl_->options.max_text_chars)},
                 {"tokens", rollout.tokens},
                 {"truncated", rollout.truncated},
                 {"reward", rollout.reward},
                 {"reward_raw", rollout.reward_raw},
                 {"judge_term", or_null(rollout.judge_term)}};
  if (rollout.advantage_range) {
    record["advantage_min"] = rollout.advantage_range->first;
    record["advantage_max"] = rollout.advantage_range->second;
  } else {
    record["advantage"] = or_null(rollout.advantage);
  }
  record["seed"] = std::to_string(rollout.seed);
  record["trained"] = nullptr;
  record["skip_reason"] = skip_value(rollout.skip);
  write(std::move(record));
}

void Observer::selection(const ObservedSelection& selection) {
  write({{"type", "selection"},
         {"update", selection.update},
         {"group", selection.group},
         {"live", selection.live},
         {"skip_reason", skip_value(selection.skip)},
         {"reward_mean", selection.reward_mean},
         {"reward_std", selection.reward_std}});
}

void Observer::outcome(int64_t update, int64_t group, bool trained) {
  write({{"type", "outcome"}, {"update", update}, {"group", group}, {"trained", trained}});
}

void Observer::update(int64_t update, bool skipped, std::span<const MetricValue> metrics) {
  Json values = Json::object();
  for (const auto& [name, value] : metrics) values[std::string(name)] = value;
  write({{"type", "update"},
         {"update", update},
         {"status", skipped ? "skipped" : "completed"},
         {"metrics", std::move(values)}});
}

std::string cut_text(std::string_view text, int64_t chars) {
  if (chars <= 0) return std::string(text);
  int64_t seen = 0;
  size_t cut = text.size();
  for (size_t at = 0; at < text.size(); at += text::utf8_step(text, at).length) {
    if (seen++ == chars) cut = at;
  }
  if (seen <= chars) return std::string(text);
  return fmt::format("{}…[+{} chars]", text.substr(0, cut), seen - chars);
}

}  // namespace retro::run
