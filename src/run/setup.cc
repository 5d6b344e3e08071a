#include "run/setup.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/memory_info.h"
#include "model/adapter.h"
#include "run/interrupt.h"
#include "run/levers.h"

namespace retro::run {

using tensor::DType;

ModelContext open_model(const Document& document) {
  try {
    return ModelContext(document.model.path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io || !document.given("model.path")) throw;
    throw error.within(place(document, "model.path"));
  }
}

void warn_of_long_context(const Document& document, const ModelContext& context, Reporter& reporter) {
  const int64_t longest = context.model.hyperparameters().context_length;
  if (document.training.ctx <= longest) return;
  reporter.warn(fmt::format("{} = {}: the model was made for at most {} tokens",
                            place(document, "training.ctx"), document.training.ctx, longest));
}

engine::EngineOptions engine_options(const Document& document, const Workload& workload) {
  const TrainingSection& t = document.training;
  engine::EngineOptions options;
  options.micro_batch = workload.widest_pass(t.micro_batch);
  options.set_rows = workload.longest_record;
  options.context = static_cast<int32_t>(t.ctx);
  options.kv_dtype = t.kv_dtype == CacheType::f16 ? DType::F16 : DType::F32;
  if (t.gradient_checkpointing) options.checkpoint_layers = static_cast<int32_t>(t.checkpoint_every_n_layers);
  if (t.checkpoint_dtype == RetainedType::f16) options.checkpoint_dtype = DType::F16;
  if (t.checkpoint_dtype == RetainedType::bf16) options.checkpoint_dtype = DType::BF16;
  // The same memory as [seq_chunk, vocabulary / tiles], held as whole rows: a row's logits are then made
  // once.
  const int64_t rows =
      t.chunked_ce_seq_chunk > 0 ? std::min(t.chunked_ce_seq_chunk, t.micro_batch) : t.micro_batch;
  const int64_t chunk =
      t.chunked_cross_entropy ? (rows + t.chunked_ce_tiles - 1) / t.chunked_ce_tiles : t.micro_batch;
  options.head_chunk_rows = std::min<int64_t>(chunk, options.micro_batch);
  return options;
}

engine::OptimizerOptions optimizer_options(const Document& document) {
  engine::OptimizerOptions options;
  switch (document.training.optimizer) {
    case OptimizerKind::adamw:
      options.kind = engine::OptimizerKind::adamw;
      break;
    case OptimizerKind::sgd:
      options.kind = engine::OptimizerKind::sgd;
      break;
    case OptimizerKind::muon:
      options.kind = engine::OptimizerKind::muon;
      break;
    case OptimizerKind::gefen:
      options.kind = engine::OptimizerKind::gefen;
      break;
    case OptimizerKind::adamw8bit:
      options.kind = engine::OptimizerKind::adamw8bit;
      break;
  }
  const bool gefen = document.training.optimizer == OptimizerKind::gefen;
  options.beta1 = static_cast<float>(gefen ? document.gefen.beta1 : document.optimizer.beta1);
  options.beta2 = static_cast<float>(gefen ? document.gefen.beta2 : document.optimizer.beta2);
  options.eps = static_cast<float>(gefen ? document.gefen.eps : document.optimizer.eps);
  options.lr = document.training.lr;
  options.fallback_lr = document.muon.fallback_learning_rate;
  options.momentum = static_cast<float>(document.muon.momentum);
  options.nesterov = document.muon.nesterov;
  options.ns_steps = static_cast<int32_t>(document.muon.ns_steps);
  options.ns_epsilon = static_cast<float>(document.muon.ns_epsilon);
  options.quantized_m = document.gefen.variant == GefenVariant::quantized_m;
  options.block_size = document.gefen.block_size;
  options.min_numel = document.gefen.min_numel;
  options.weight_decay = static_cast<float>(document.training.weight_decay);
  options.max_grad_norm = document.training.max_grad_norm;
  return options;
}

model::AdapterLayout adapter_layout(const Document& document, const ModelContext& context) {
  if (document.lora.init_adapter) {
    return model::read_adapter(*document.lora.init_adapter, context.model).adapter.layout;
  }
  const DType dtype = document.lora.dtype == AdapterType::f16 ? DType::F16 : DType::F32;
  try {
    return model::choose_targets(context.model, document.lora.targets,
                                 static_cast<int32_t>(document.lora.rank),
                                 static_cast<float>(document.lora.alpha), dtype);
  } catch (const Error& error) {
    throw error.within(place(document, "lora.targets"));
  }
}

model::Adapter first_adapter(const Document& document, const ModelContext& context,
                             const std::string& fingerprint, Reporter& reporter) {
  model::LoadedAdapter loaded = model::read_adapter(*document.lora.init_adapter, context.model);
  for (const std::string& line : model::describe_loading(loaded, context.model, fingerprint)) {
    line.starts_with("warning: ") ? reporter.warn(line.substr(9)) : reporter.note(line);
  }
  return std::move(loaded.adapter);
}

std::string fingerprint_model(const ModelContext& context, Reporter& reporter) {
  return context.model.file().fingerprint([&](uint64_t done, uint64_t total) {
    reporter.progress("reading the model", static_cast<int64_t>(done >> 20),
                      static_cast<int64_t>(total >> 20), "MiB");
    if (interrupted()) fail(ErrorKind::interrupted, "interrupted");
  });
}

int64_t MemoryPlan::total() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const engine::MemoryPart& part) { return sum + part.bytes; });
}

MemoryPlan plan_memory(const ModelContext& context, const engine::EnginePlan& plan,
                       const model::AdapterLayout* layout, const engine::OptimizerOptions& optimizer,
                       int threads, int64_t program_bytes) {
  MemoryPlan memory;
  memory.parts.push_back(
      {"model, mapped from its file", static_cast<int64_t>(context.model.file().tensor_bytes())});
  if (layout != nullptr) {
    memory.parts.push_back({"adapter, f32", layout->size() * int64_t{sizeof(float)}});
    // A written adapter is mapped whole, to be compared.
    memory.parts.push_back(
        {"adapter's file while it is checked", tensor::row_bytes(layout->dtype, layout->size())});
    if (plan.options.train) {
      const auto bytes = engine::optimizer_bytes(optimizer, engine::parameters_of(*layout));
      memory.parts.push_back({"optimizer state", bytes.state});
      if (bytes.scratch > 0) memory.parts.push_back({"optimizer scratch", bytes.scratch});
    }
  }
  memory.parts.insert(memory.parts.end(), plan.parts.begin(), plan.parts.end());
  memory.parts.push_back({"kernel scratch", device::cpu_scratch_bytes(threads)});
  memory.parts.push_back({"program, vocabulary and data", program_bytes});
  return memory;
}

int64_t program_bytes() {
  return anonymous_bytes() + program_file_bytes();
}

void check_fits(const Document& document, const ModelContext& context, const MemoryPlan& plan,
                const Workload& workload, int64_t program_bytes) {
  const int64_t resident = anonymous_bytes();
  const int64_t available = available_bytes() + resident;
  if (plan.total() <= available) return;
  const auto fit = first_fit(lever_settings(document, context, workload, program_bytes), available);
  std::string advice =
      "no setting of the memory levers fits; a lower lora.rank, a smaller model or a machine with more "
      "memory "
      "would";
  if (fit) {
    advice = "set in [training]:";
    for (const auto& [key, value] : fit->changes(document)) advice += fmt::format(" {} = {};", key, value);
    const bool rounds = fit->checkpoint_dtype != document.training.checkpoint_dtype;
    advice += rounds ? " the gradient is the same but for the rounding of checkpoints"
                     : " the gradient stays the same";
    advice += " (`retrograd plan --memory … --write` writes them)";
  }
  fail(ErrorKind::config, "{}: the run takes {} MiB and {} MiB are available: {}", document.path.string(),
       plan.total() >> 20, available >> 20, advice);
}

}  // namespace retro::run
