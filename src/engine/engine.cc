#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "tensor/half.h"

namespace retro::engine {

namespace {

int64_t carry_bytes(const graph::CarryShape& shape, DType dtype, int64_t rows) {
  return 2 * tensor::row_bytes(dtype, shape.cols) * rows;
}

}  // namespace

int64_t EnginePlan::bytes() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

EnginePlan plan_engine(const model::Model& model, const model::AdapterLayout* adapter,
                       const EngineOptions& options) {
  EnginePlan plan;
  plan.options = options;
  plan.options.set_rows = std::max(options.set_rows, options.micro_batch);
  plan.carry_rows = std::max(options.carry_rows, plan.options.set_rows);
  const bool several_passes = plan.options.set_rows > options.micro_batch;

  graph::ProgramOptions program;
  program.backward = options.train;
  program.checkpoint_layers = options.checkpoint_layers;
  program.checkpoint_dtype = options.checkpoint_dtype;
  program.head_chunk_rows = std::min<int64_t>(options.head_chunk_rows, device::kMaxHeadChunkRows);
  program.keep_carry_gradients = several_passes;
  program.fast_activations = options.fast_activations;
  const int32_t context = options.context > 0 ? options.context : plan.options.set_rows;
  model::ModelGraph built = model.build_graph(adapter, plan.options.set_rows, context);
  plan.program = graph::make_program(built.graph, program);
  const int64_t table_bytes = built.table_bytes();
  plan.tables = std::move(built.tables);
  plan.plan = graph::make_plan(plan.program, options.micro_batch);

  int64_t kv = 0;
  int64_t kv_gradients = 0;
  for (const auto& carry : plan.program.carries) {
    kv += carry_bytes(carry, options.kv_dtype, plan.carry_rows);
    const int64_t gradients = carry_bytes(carry, DType::F32, plan.carry_rows);
    kv_gradients = several_passes ? kv_gradients + gradients : std::max(kv_gradients, gradients);
  }
  plan.parts = {{"activations kept for the backward pass", plan.plan.kept_bytes},
                {"activations and gradients of the moment", plan.plan.working_bytes},
                {"logits tiles", plan.plan.logits_bytes},
                {"keys and values", kv},
                {"rotary tables", table_bytes}};
  if (options.train) {
    plan.parts.push_back({"gradients of keys and values", kv_gradients});
    plan.parts.push_back({"adapter gradient", adapter->size() * int64_t{sizeof(float)}});
  }
  if (adapter != nullptr && adapter->dtype != DType::F32) {
    plan.parts.push_back({"adapter, as stored", tensor::row_bytes(adapter->dtype, 1) * adapter->size()});
  }
  return plan;
}

Engine::Engine(device::Device& device, const model::Adapter* adapter, EnginePlan plan)
    : device_(device), adapter_(adapter), plan_(std::move(plan)), pass_(plan_.options.micro_batch) {
  arena_ =
      static_cast<std::byte*>(allocate(plan_.plan.arena_bytes, "activations (lower training.micro_batch)"));
  bind(adapter);
  require_supported();
  refresh_adapter();
}

void Engine::require_supported() const {
  for (const device::OpArgs& op : executable_.operations()) {
    if (const auto reason = device_.unsupported(op)) {
      fail(ErrorKind::device, "the model does not run on {}: {}", device_.name(), *reason);
    }
  }
}

void* Engine::allocate(int64_t bytes, const char* what) {
  void* memory = device_.allocate(static_cast<size_t>(bytes), what);
  memory_.push_back({memory, Release{&device_, static_cast<size_t>(bytes)}});
  return memory;
}

void Engine::bind(const model::Adapter* adapter) {
  graph::Bindings bindings;
  const bool train = plan_.options.train;
  const DType kv = plan_.options.kv_dtype;
  const bool shared_gradients = !train || plan_.options.set_rows <= plan_.options.micro_batch;
  int64_t widest = 0;
  for (const auto& carry : plan_.program.carries) widest = std::max(widest, carry.cols);
  float* shared = nullptr;
  if (train && shared_gradients) {
    shared =
        static_cast<float*>(allocate(carry_bytes({widest}, DType::F32, plan_.carry_rows), "key gradients"));
  }
  for (const auto& carry : plan_.program.carries) {
    const int64_t half = tensor::row_bytes(kv, carry.cols) * plan_.carry_rows;
    auto* keys = static_cast<std::byte*>(allocate(2 * half, "keys and values"));
    graph::CarryBuffers buffers;
    buffers.k = {keys, carry.cols, carry.cols, kv};
    buffers.v = {keys + half, carry.cols, carry.cols, kv};
    if (train) {
      float* gradients = shared_gradients
                             ? shared
                             : static_cast<float*>(allocate(carry_bytes(carry, DType::F32, plan_.carry_rows),
                                                            "key gradients"));
      buffers.dk = {gradients, carry.cols, 2 * carry.cols, DType::F32};
      buffers.dv = {gradients + carry.cols, carry.cols, 2 * carry.cols, DType::F32};
    }
    bindings.carries.push_back(buffers);
  }
  bindings.carry_rows = plan_.carry_rows;
  carries_ = bindings.carries;

  if (adapter != nullptr) {
    const auto size = static_cast<size_t>(adapter->layout.size());
    const DType dtype = adapter->layout.dtype;
    if (dtype != DType::F32)
      working_ = allocate(tensor::row_bytes(dtype, 1) * adapter->layout.size(), "adapter");
    if (train) {
      gradient_ = {static_cast<float*>(allocate(adapter->layout.size() * int64_t{sizeof(float)}, "gradient")),
                   size};
    }
    for (const graph::LoraShape& shape : plan_.program.loras) {
      const model::LoraTarget& target = *adapter->layout.find(shape.name);
      const auto at = [&](int64_t offset) -> const void* {
        if (working_ == nullptr) return adapter->weights.data() + offset;
        return static_cast<const std::byte*>(working_) + tensor::row_bytes(dtype, 1) * offset;
      };
      graph::LoraBuffers lora;
      lora.lora = {at(target.a_offset), at(target.bt_offset), dtype, target.rank,
                   adapter->layout.alpha / static_cast<float>(target.rank)};
      if (train) {
        lora.da = gradient_.data() + target.a_offset;
        lora.dbt = gradient_.data() + target.bt_offset;
      }
      bindings.loras.push_back(lora);
    }
  }
  executable_ = graph::Executable(plan_.program, plan_.plan, arena_, std::move(bindings));
}

void Engine::clear_gradient() {
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
}

void Engine::refresh_adapter() {
  if (working_ == nullptr) return;
  auto* halves = static_cast<uint16_t*>(working_);
  for (size_t i = 0; i < adapter_->weights.size(); ++i) halves[i] = tensor::f32_to_f16(adapter_->weights[i]);
}

void Engine::clear_carry_gradients(int64_t rows) {
  RETRO_CHECK(rows <= plan_.carry_rows);
  for (const auto& carry : carries_) {
    std::memset(carry.dk.data, 0, static_cast<size_t>(rows * carry.dk.stride) * sizeof(float));
  }
}

void Engine::run(std::span<const Sequence> set, std::span<const Piece> pieces, device::HeadMode mode,
                 size_t begin, size_t end) {
  const device::PassArgs& pass = pass_.build(set, pieces, mode, 1 / plan_.options.temperature);
  for (const int32_t row : pass.carry_rows) RETRO_CHECK(row < plan_.carry_rows);
  executable_.run(device_, begin, end, pass);
  if (end >= plan_.program.head_end) pass_.deliver(set, head_args().h);
}

void Engine::score(std::span<const Sequence> sequences) {
  while (!sequences.empty()) {
    const size_t count = pass_prefix(sequences.size(), plan_.options.micro_batch,
                                     [&](size_t i) { return sequences[i].rows(); });
    score_set(sequences.first(count));
    sequences = sequences.subspan(count);
  }
}

void Engine::score_set(std::span<const Sequence> set) {
  passes_.cut(set, plan_.options.micro_batch);
  for (size_t p = 0; p < passes_.size(); ++p) {
    run(set, passes_[p], device::HeadMode::score, 0, plan_.program.head_end);
  }
}

void Engine::accumulate(std::span<const Sequence> sequences) {
  while (!sequences.empty()) {
    const size_t count = pass_prefix(sequences.size(), plan_.options.micro_batch,
                                     [&](size_t i) { return sequences[i].rows(); });
    accumulate_known(sequences.first(count));
    sequences = sequences.subspan(count);
  }
}

// The first sweep leaves every earlier pass's keys and values; the second goes back from the last pass,
// making each pass's activations again, so that the gradients of its keys are complete when its own turn
// comes.
void Engine::accumulate_known(std::span<const Sequence> set) {
  passes_.cut(set, plan_.options.micro_batch);
  const size_t end = plan_.program.nodes.size();
  if (passes_.size() > 1 || plan_.options.set_rows > plan_.options.micro_batch) {
    int64_t rows = 0;
    for (const Sequence& sequence : set) rows += sequence.rows();
    clear_carry_gradients(rows);
  }
  for (size_t p = 0; p + 1 < passes_.size(); ++p) {
    run(set, passes_[p], device::HeadMode::score, 0, plan_.program.carry_end);
  }
  for (size_t p = passes_.size(); p-- > 0;) run(set, passes_[p], device::HeadMode::backward, 0, end);
}

void Engine::accumulate_coupled(std::span<const Sequence> set, const Objective& objective) {
  passes_.cut(set, plan_.options.micro_batch);
  const graph::Program& program = plan_.program;
  if (plan_.options.set_rows > plan_.options.micro_batch) {
    int64_t rows = 0;
    for (const Sequence& sequence : set) rows += sequence.rows();
    clear_carry_gradients(rows);
  }
  score_set(set);
  objective();
  // The last pass's activations are still there.
  run(set, passes_[passes_.size() - 1], device::HeadMode::backward, program.forward_end,
      program.nodes.size());
  for (size_t p = passes_.size() - 1; p-- > 0;) {
    run(set, passes_[p], device::HeadMode::backward, 0, program.nodes.size());
  }
}

std::span<const float> Engine::next_logits(std::span<const int32_t> tokens, int32_t position) {
  RETRO_CHECK(!tokens.empty() && position + static_cast<int64_t>(tokens.size()) <= plan_.carry_rows);
  // The last row asks about a token that does not matter: its whole row of logits is what is wanted.
  std::vector<int32_t> all(static_cast<size_t>(position) + tokens.size() + 1, 0);
  std::copy(tokens.begin(), tokens.end(), all.begin() + position);
  const int32_t target = static_cast<int32_t>(all.size()) - 1;
  float logprob = 0;
  const Sequence sequence{all, {&target, 1}, {&logprob, 1}, {}};
  for (int32_t begin = position; begin < target;) {
    const Piece piece{0, begin, std::min(target, begin + plan_.options.micro_batch), 0};
    begin = piece.end;
    const bool last = begin == target;
    run({&sequence, 1}, {&piece, 1}, device::HeadMode::score, 0,
        last ? plan_.program.head_end : plan_.program.forward_end);
  }
  return logits().row(0);
}

Logits Engine::next_logits(std::span<const Sequence> set, std::span<const Piece> pieces) {
  RETRO_CHECK(static_cast<int64_t>(pieces.size()) <= plan_.options.head_chunk_rows);
  for (const Piece& piece : pieces) {
    const auto& targets = set[static_cast<size_t>(piece.sequence)].targets;
    const auto first = std::upper_bound(targets.begin(), targets.end(), piece.begin);
    RETRO_CHECK(first != targets.end() && *first == piece.end);
  }
  run(set, pieces, device::HeadMode::score, 0, plan_.program.head_end);
  return logits();
}

void Engine::forward(const device::PassArgs& pass) {
  RETRO_CHECK(pass.rows <= plan_.options.micro_batch);
  for (const int32_t row : pass.carry_rows) RETRO_CHECK(row < plan_.carry_rows);
  executable_.run(device_, 0, plan_.program.forward_end, pass);
}

void Engine::head(const device::PassArgs& pass) {
  executable_.run(device_, plan_.program.forward_end, plan_.program.head_end, pass);
}

const device::HeadArgs& Engine::head_args() const {
  return std::get<device::HeadArgs>(executable_.operations()[plan_.program.forward_end]);
}

Logits Engine::logits() const {
  const device::HeadArgs& head = head_args();
  return {head.logits.f32(), static_cast<size_t>(head.w.rows), static_cast<size_t>(head.logits.stride)};
}

}  // namespace retro::engine
