// The run document: one TOML file per run, checked as a whole and brought into plain structs.
//
// Nothing behind this header derives a default again: micro_batch, gradient_accumulation, threads, seeds and
// the kind of output are final here, and what was derived is said in `notes`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retro::run {

enum class Algorithm { sft, ppo, grpo };
enum class DeviceChoice { automatic, cpu };
enum class OutputKind { adapter };
enum class Trainable { lora };
enum class OptimizerKind { adamw, sgd };
enum class Schedule { constant, linear, cosine };
enum class AdapterType { f16, f32 };
enum class CacheType { f16, f32 };
enum class RetainedType { f32, f16, bf16 };
enum class CheckpointMode { steps, best_eval, steps_and_best_eval };
enum class DataFormat { text, chat };
enum class Overlong { error, drop, truncate };
enum class RewardMode { persistent, oneshot };
enum class Baseline { mean, leave_one_out };
enum class PromptSequence { sequential, shuffled };
enum class RatioLevel { token, sequence };
enum class BehaviorLogprobs { rescored, sampled };

struct RunSection {
  Algorithm algorithm = Algorithm::sft;
  bool verbose = false;
};

struct ModelSection {
  std::filesystem::path path;  ///< base GGUF, or the first part of a split one
  DeviceChoice device = DeviceChoice::automatic;
};

struct OutputSection {
  std::filesystem::path path;
  OutputKind kind = OutputKind::adapter;
};

/// With `init_adapter`, rank, alpha, targets and dtype are those of that file; the fields here are not to be
/// read.
struct LoraSection {
  int64_t rank = 8;
  double alpha = 16.0;
  uint64_t seed = 42;
  std::vector<std::string> targets = {"q", "k", "v", "o", "ffn_up", "ffn_down", "ffn_gate"};
  AdapterType dtype = AdapterType::f16;
  std::optional<std::filesystem::path> init_adapter;
};

struct TrainingSection {
  Trainable trainable = Trainable::lora;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double lr = 1e-4;
  Schedule lr_scheduler = Schedule::constant;
  int64_t warmup_steps = 0;
  double weight_decay = 0.0;
  double max_grad_norm = 1.0;  ///< 0: no clipping
  uint64_t seed = 42;
  int64_t epochs = 1;
  int64_t ctx = 128;                  ///< tokens of the longest trained sequence
  int64_t micro_batch = 128;          ///< tokens of a pass
  int64_t gradient_accumulation = 1;  ///< passes of a step
  int threads = 1;                    ///< RETRO_THREADS, the document, or physical cores, in that order
  CacheType kv_dtype = CacheType::f16;
  bool gradient_checkpointing = false;
  int64_t checkpoint_every_n_layers = 4;
  RetainedType checkpoint_dtype = RetainedType::f32;
  bool chunked_cross_entropy = true;
  int64_t chunked_ce_tiles = 8;
  int64_t chunked_ce_seq_chunk = 512;  ///< 0: all rows of a pass
  bool require_gpu_resident =
      false;  ///< RETRO_REQUIRE_GPU_RESIDENT=1; the key itself is refused without a GPU
  double max_gpu_duty_cycle = 1.0;

  // Of runs that sample answers.
  int64_t generation_concurrency = 1;       ///< sequences decoded at once
  std::optional<int64_t> generation_batch;  ///< tokens of a prefill; none: the engine's choice
  int64_t shared_prefix_fanout = 0;         ///< answers to a shared prompt, or one of kFanout*
  bool fast_sampling_context = true;
  BehaviorLogprobs behavior_logprobs = BehaviorLogprobs::rescored;

  static constexpr int64_t kFanoutAuto = 0, kFanoutOff = -1, kFanoutMax = -2;

  /// Tokens of one optimizer step; it divides `ctx` or is a multiple of it.
  int64_t step_tokens() const { return micro_batch * gradient_accumulation; }
};

/// `[optimizer.adamw]`.
struct OptimizerSection {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

struct EvaluationSection {
  std::filesystem::path data;
  int64_t every_iterations = 1;  ///< epochs
  std::optional<int64_t> max_examples;
  std::optional<int64_t> patience;
  double min_delta = 0.0;
};

struct CheckpointSection {
  std::filesystem::path directory;
  CheckpointMode mode = CheckpointMode::steps;
  std::optional<int64_t> every_steps;  ///< set exactly when the mode writes step checkpoints
  std::optional<int64_t> keep_last;
  std::optional<std::filesystem::path> resume_from;

  bool keeps_steps() const { return mode != CheckpointMode::best_eval; }
  bool keeps_best() const { return mode != CheckpointMode::steps; }
};

struct MetricsSection {
  std::optional<std::filesystem::path> jsonl;
};

struct SftSection {
  std::filesystem::path data;
  std::optional<DataFormat> data_format;  ///< none: inferred from the file
  bool shuffle = true;
  bool packing = true;
  Overlong overlong = Overlong::error;
  std::string template_variables = "{}";  ///< a JSON object, keys in order of their bytes
};

/// `[ppo.sampling]`, `[grpo.sampling]`.
struct SamplingSection {
  double temperature = 1.0;
  double top_p = 1.0;
  int64_t max_new_tokens = 0;
  uint64_t seed = 0;
};

/// What [ppo] and [grpo] have in common.
struct RolloutSection {
  std::filesystem::path prompts;
  std::vector<std::string> reward_command;  ///< a program and its arguments, as they stand
  RewardMode reward_mode = RewardMode::persistent;
  double reward_timeout_seconds = 300;
  int64_t updates = 0;
  double kl_coefficient = 0;
  SamplingSection sampling;
};

/// `[ppo.critic]`.
struct CriticSection {
  bool enabled = true;
  double gamma = 1.0;
  double gae_lambda = 0.95;
  double value_lr = 0.01;
  int64_t value_epochs = 8;
  RetainedType feature_dtype = RetainedType::f32;
};

struct PpoSection : RolloutSection {
  int64_t rollout_batch_size = 0;
  int64_t ppo_epochs = 0;
  double clip_range = 0;
  CriticSection critic;
};

struct OverlongPenaltySection {
  int64_t buffer_tokens = 0;
  double max_penalty = 0;
};

struct KlScheduleSection {
  int64_t warmup_updates = 0;
  std::optional<double> target;
};

struct DynamicSamplingSection {
  int64_t max_resample_factor = 0;
};

struct GrpoSection : RolloutSection {
  int64_t prompts_per_update = 0;
  int64_t group_size = 0;
  int64_t grpo_epochs = 0;
  double clip_range_low = 0;
  double clip_range_high = 0;
  bool mask_truncated = false;
  Baseline baseline = Baseline::mean;
  PromptSequence prompt_order = PromptSequence::sequential;
  int64_t max_stalled_updates = 25;  ///< 0: never stops
  RatioLevel importance_sampling_level = RatioLevel::token;
  std::optional<OverlongPenaltySection> overlong_penalty;
  std::optional<KlScheduleSection> kl_schedule;
  std::optional<DynamicSamplingSection> dynamic_sampling;
};

struct ObserveSection {
  std::filesystem::path directory;
  bool enabled = true;
  int64_t every = 1;           ///< updates
  int64_t max_text_chars = 0;  ///< 0: whole texts
};

/// The frozen model of a KL term.
struct ReferenceSection {
  std::filesystem::path model;
  int64_t ctx = 0;  ///< training.ctx where it is not set
};

struct Position {
  int line = 0;
  int column = 0;
};

struct Document {
  std::filesystem::path path;
  RunSection run;
  ModelSection model;
  OutputSection output;
  LoraSection lora;
  TrainingSection training;
  OptimizerSection optimizer;
  std::optional<EvaluationSection> evaluation;
  std::optional<CheckpointSection> checkpoint;
  MetricsSection metrics;
  SftSection sft;
  PpoSection ppo;    ///< of algorithm ppo
  GrpoSection grpo;  ///< of algorithm grpo
  std::optional<ObserveSection> observe;
  std::optional<ReferenceSection> reference;

  std::vector<std::string> warnings;  ///< keys that cannot matter
  std::vector<std::string> notes;     ///< what was derived and should be said at the start of a run
  std::map<std::string, Position, std::less<>> positions;  ///< "training.lr" → where its key stands

  bool given(std::string_view key) const { return positions.find(key) != positions.end(); }

  /// Whether the run samples answers.
  bool rolls_out() const { return run.algorithm != Algorithm::sft; }
  /// The section of a run that samples answers.
  const RolloutSection& rollout() const;
  /// Answers of an update that is whole: prompts_per_update × group_size, or rollout_batch_size.
  int64_t answers_per_update() const;
  /// Steps that the schedule counts: groups × epochs, or answers × epochs, over all updates.
  int64_t nominal_steps() const;
};

/// What the command line says over the document; its paths are relative to the working directory.
struct Overrides {
  std::optional<std::filesystem::path> model;
  std::optional<std::string> device;
};

/// Reads and checks a run document. Relative paths in it resolve against its folder. Throws Error(config)
/// that lists every fault (up to 20), one a line, as `file:line:column: [section].key = value: rule, and what
/// passes`.
Document load_document(const std::filesystem::path& path, const Overrides& overrides = {});

/// The same for a text that stands for the file `path`.
Document parse_document(std::string_view text, const std::filesystem::path& path,
                        const Overrides& overrides = {});

/// Refuses a document of an algorithm that this build reads, but does not run. Throws Error(config).
void require_sft(const Document& document);

/// `file:line:column: [training].warmup_steps` of a key as "training.warmup_steps", without line and column
/// where the document does not set it; for rules that need the model or the data to check.
std::string place(const Document& document, std::string_view key);

}  // namespace retro::run
