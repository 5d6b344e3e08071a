// The folder of [observe]: what a run sampled, how it was scored and what became of it, for people to read.
//
// observe.jsonl has one object a line with `v` (1), `type`, `time` (RFC 3339) and `segment` (a count of the
// starts that wrote into the file). observe.js has the same lines as calls of a function, since a page that
// was opened from the file system may load scripts but not read files; index.html shows them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/metrics.h"

namespace retro::run {

struct ObserveOptions {
  std::filesystem::path directory = {};
  int64_t every = 1;           ///< updates between two whose rollouts are written
  int64_t max_text_chars = 0;  ///< of a text; 0: whole
};

/// `run`: the first record of a segment. Updates count from 0; a segment that resumed begins with update
/// `resumed_from_update`, and what earlier ones wrote of that and later updates is void.
struct ObservedRun {
  std::string algorithm;
  std::string document;  ///< its path
  std::string model;     ///< its path
  int64_t updates = 0;   ///< of the whole run
  std::optional<int64_t> resumed_from_update;
};

enum class SkipReason { none, truncated, zero_signal, judge_dropped, unscored, update_skipped };

struct ObservedRollout {
  int64_t update = 0;
  int64_t group = 0;   ///< in the update; of ppo, the answer's place in the batch
  int64_t member = 0;  ///< in the group
  int64_t prompt = 0;  ///< index in the prompt file
  std::string completion;
  int64_t tokens = 0;
  bool truncated = false;
  double reward = 0;      ///< as trained on
  double reward_raw = 0;  ///< as the program gave it
  std::optional<double> judge_term;
  std::optional<double> advantage;
  std::optional<std::pair<double, double>>
      advantage_range;  ///< least and most over its tokens, with a critic
  uint64_t seed = 0;    ///< written as a string: it may exceed 2^53
  SkipReason skip = SkipReason::none;
};

/// `selection`: which members of a group are trained on.
struct ObservedSelection {
  int64_t update = 0;
  int64_t group = 0;
  std::vector<int64_t> live;  ///< members
  SkipReason skip = SkipReason::none;
  double reward_mean = 0;
  double reward_std = 0;
};

/// Writes in a thread of its own and never fails: a folder that cannot be written, is in use by another run
/// or holds foreign files, a full disk, or a disk that does not keep up turn it off, which is told once
/// through `warn`, in the thread of a caller.
class Observer {
 public:
  using Warn = std::function<void(std::string_view)>;

  /// Writes nothing.
  Observer();
  Observer(const ObserveOptions& options, const ObservedRun& run, Warn warn);
  /// Writes what is queued, as far as the disk takes it.
  ~Observer();
  Observer(Observer&&) noexcept;
  Observer& operator=(Observer&&) noexcept;

  /// Whether the rollouts of update `update` are to be given.
  bool wants(int64_t update) const;

  /// `prompt`: once a segment, however often it is given. `messages` as in the prompt file.
  void prompt(int64_t index, const nlohmann::ordered_json& messages);
  void rollout(const ObservedRollout& rollout);
  void selection(const ObservedSelection& selection);
  /// `outcome`: says of a group's selected members that they were trained on, or not.
  void outcome(int64_t update, int64_t group, bool trained);
  /// `update`: closes it, with its metrics. Given for every update.
  void update(int64_t update, bool skipped, std::span<const MetricValue> metrics);

 private:
  struct Impl;
  void write(nlohmann::ordered_json record);
  void turn_off(const std::string& why);

  std::unique_ptr<Impl> impl_;  // null: off
};

/// `text` cut to `chars` characters (code points) with `…[+N chars]` behind it; 0 leaves it whole.
std::string cut_text(std::string_view text, int64_t chars);

/// The page, as index.html has it.
extern const std::string_view kObservePage;

}  // namespace retro::run
