// From a document to the engine's options, the adapter and the memory of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/optimizer.h"
#include "run/document.h"
#include "run/model_context.h"
#include "run/reporter.h"
#include "run/workload.h"

namespace retro::run {

/// The document's model; a file that cannot be opened is told with its key.
ModelContext open_model(const Document& document);

/// Warns when training.ctx is longer than the model was made for: it trains, but rarely well.
void warn_of_long_context(const Document& document, const ModelContext& context, Reporter& reporter);

/// The document's engine, no wider than the passes that come: unused rows would be planned and never touched.
engine::EngineOptions engine_options(const Document& document, const Workload& workload);

engine::OptimizerOptions optimizer_options(const Document& document);

/// The adapter of `lora.init_adapter`; says how many tensors it changes.
model::Adapter first_adapter(const Document& document, const ModelContext& context,
                             const std::string& fingerprint, Reporter& reporter);

/// The layout alone, for a plan.
model::AdapterLayout adapter_layout(const Document& document, const ModelContext& context);

/// The model's fingerprint, with a progress bar while it is hashed.
std::string fingerprint_model(const ModelContext& context, Reporter& reporter);

/// The peak of a run by part: what engine, adapter and optimizer take, the mapped model, and what the process
/// has already taken for program, vocabulary and data.
struct MemoryPlan {
  std::vector<engine::MemoryPart> parts;
  int64_t total() const;
};

MemoryPlan plan_memory(const ModelContext& context, const engine::EnginePlan& plan,
                       const model::AdapterLayout* layout, const engine::OptimizerOptions& optimizer,
                       int threads, int64_t program_bytes);

/// What the process holds now beside the mapped model; asked before adapter and engine are made.
int64_t program_bytes();

/// Throws Error(config) with the levers to pull, in their order, when `plan` does not fit what is available.
void check_fits(const Document& document, const ModelContext& context, const MemoryPlan& plan,
                const Workload& workload, int64_t program_bytes);

}  // namespace retro::run
