// Memory levers, in the order in which they are pulled: micro_batch, gradient checkpointing, bf16
// checkpoints, chunked cross-entropy where it was off.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/document.h"
#include "run/setup.h"

namespace retro::run {

/// One setting of the levers and what the run then takes.
struct LeverSetting {
  int64_t micro_batch = 0;
  int64_t gradient_accumulation = 0;
  bool gradient_checkpointing = false;
  RetainedType checkpoint_dtype = RetainedType::f32;
  bool chunked_cross_entropy = true;
  int64_t bytes = 0;
  double relative_time = 1;  // of a step, to the document's own setting

  /// The keys of [training] that differ from the document's, with values as TOML writes them.
  std::vector<std::pair<std::string, std::string>> changes(const Document& document) const;
};

/// The settings in order: first the document's own, then each lever pulled further. The product of
/// micro_batch and gradient_accumulation, and so the gradient, stays the same. `program_bytes`: as
/// plan_memory takes it.
std::vector<LeverSetting> lever_settings(const Document& document, const ModelContext& context,
                                         const Workload& workload, int64_t program_bytes);

/// The first that fits `bytes`; none when none does.
std::optional<LeverSetting> first_fit(const std::vector<LeverSetting>& settings, int64_t bytes);

/// The text of a document with keys of [training] set, comments and order kept. Throws Error(config) with the
/// keys to set by hand where the section is written in a way that the edit would break; `file` names it.
std::string with_training_keys(const std::string& toml, const std::string& file,
                               const std::vector<std::pair<std::string, std::string>>& changes);

}  // namespace retro::run
