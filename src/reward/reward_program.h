// The program that scores completions, as a run uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reward/process.h"
#include "reward/protocol.h"

namespace retro::reward {

enum class RewardMode {
  persistent,  ///< one process for the run, by the protocol "retrograd-reward/1"
  oneshot,     ///< one process a batch: requests, end of input, answers, exit status 0
};

struct RewardOptions {
  std::vector<std::string> command;  ///< the program and its arguments; no shell reads them
  RewardMode mode = RewardMode::persistent;
  double timeout_seconds = 300;       ///< of a batch, the program's start included
  bool judged = false;                ///< answers may carry judge_weight
  std::function<bool()> interrupted;  ///< asked while waiting; may be empty
};

/// Scores completions. Started with the first batch; make and use it in one thread that outlives it.
class RewardProgram {
 public:
  /// Throws Error(config) when the command names no program that can be executed.
  explicit RewardProgram(RewardOptions options);
  /// Kills what still runs.
  ~RewardProgram();
  RewardProgram(const RewardProgram&) = delete;
  RewardProgram& operator=(const RewardProgram&) = delete;

  /// One reward a request, in their order. A batch that fails or is late kills the program with everything it
  /// started and throws Error(protocol) with the line, what is wrong and the end of the program's stderr;
  /// Error(interrupted) where `interrupted` said so. It cannot be used after that.
  std::vector<Reward> score(std::span<const RewardRequest> requests);

  /// Ends its input and gives it a moment to go, then kills what is left.
  void finish() noexcept;

 private:
  using Clock = Process::Clock;

  void begin(Clock::time_point deadline);
  void score_persistent(std::span<const RewardRequest> requests, Clock::time_point deadline,
                        std::vector<Reward>& rewards);
  void score_oneshot(std::span<const RewardRequest> requests, Clock::time_point deadline,
                     std::vector<Reward>& rewards);
  void send(const std::string& line);
  /// The next line; false at the end of the output. Throws for everything else.
  bool read_line(Clock::time_point deadline);
  void need_line(Clock::time_point deadline, std::string_view due);
  void check_exit(Clock::time_point deadline);
  [[noreturn]] void broken(std::string_view what);
  /// Runs a check of `line_`; what it says is wrong gets the line beside it.
  template <typename Check>
  auto checked(Check check);

  RewardOptions options_;
  std::unique_ptr<Process> process_;
  std::string line_;
  std::string where_;  // what was waited for, for messages
  int64_t batches_ = 0;
};

}  // namespace retro::reward
