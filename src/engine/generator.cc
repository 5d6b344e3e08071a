#include "engine/generator.h"

#include <algorithm>

#include "base/error.h"

namespace retro::engine {

int64_t generation_pages(int64_t concurrency, int64_t prompts, int64_t longest_prompt, int64_t new_tokens) {
  // An answer computes its prompt's last token itself, and never its own last one.
  return std::min(concurrency, prompts) * pages_of(longest_prompt) + concurrency * pages_of(new_tokens);
}

EnginePlan plan_generator(const model::Model& model, const model::AdapterLayout* adapter,
                          const GeneratorOptions& options) {
  EngineOptions engine;
  engine.train = false;
  engine.micro_batch = std::max(options.batch, options.concurrency);
  engine.set_rows = options.context;
  engine.context = options.context;
  engine.carry_rows = static_cast<int32_t>(options.pages * kPageRows);
  engine.kv_dtype = options.kv_dtype;
  engine.fast_activations = options.fast;
  engine.head_chunk_rows = std::min<int64_t>(options.head_chunk_rows, options.concurrency);
  return plan_engine(model, adapter, engine);
}

Generator::Generator(device::Device& device, const model::Model& model, const model::Adapter* adapter,
                     const GeneratorOptions& options)
    : options_(options),
      engine_(device, adapter,
              plan_generator(model, adapter == nullptr ? nullptr : &adapter->layout, options)),
      pages_(static_cast<int32_t>(options.pages)),
      page_segment_(static_cast<size_t>(options.pages), -1) {
  std::sort(options_.end_tokens.begin(), options_.end_tokens.end());
}

Generator::Id Generator::open() {
  Id id = states_.size();
  if (unused_.empty()) {
    states_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  states_[id] = std::make_unique<State>(State{{}, PageTable(pages_), {}, {}, {}, 0, true});
  return id;
}

Generator::Id Generator::fork(Id id) {
  const Id child = open();
  at(child).tokens = at(id).tokens;
  at(child).table = at(id).table.fork();
  spared_ += at(id).table.rows();
  return child;
}

void Generator::close(Id id) {
  states_[id].reset();
  unused_.push_back(id);
}

void Generator::append(Id id, std::span<const int32_t> tokens) {
  State& state = at(id);
  if (state.tokens.size() + tokens.size() > static_cast<size_t>(options_.context)) {
    fail(ErrorKind::data, "{} tokens do not fit a context of {}", state.tokens.size() + tokens.size(),
         options_.context);
  }
  state.tokens.insert(state.tokens.end(), tokens.begin(), tokens.end());
}

void Generator::truncate(Id id, size_t count) {
  State& state = at(id);
  state.tokens.resize(std::min(count, state.tokens.size()));
  state.table.truncate(static_cast<int32_t>(state.tokens.size()));
  state.left = 0;
}

void Generator::start(Id id, const SamplingOptions& sampling, int32_t max_new_tokens) {
  State& state = at(id);
  RETRO_CHECK(!state.tokens.empty());
  state.options = sampling;
  state.stream.emplace(sampling.seed, "sampling");
  state.completion = {};
  state.left =
      std::min<int32_t>(max_new_tokens, options_.context - static_cast<int32_t>(state.tokens.size()));
  // The token after the last one is drawn from its row, which must be computed.
  if (!pending(id)) state.table.truncate(static_cast<int32_t>(state.tokens.size()) - 1);
}

// The segments of the tokens that lie in the carry already; returns the last one's index.
int32_t Generator::ancestors(const State& state) {
  int32_t parent = -1;
  const auto row = static_cast<int32_t>(rows_tokens_.size());
  for (const PageRun& run : state.table.runs()) {
    int32_t& segment = page_segment_[static_cast<size_t>(run.page)];
    if (segment < 0) {
      segment = static_cast<int32_t>(segments_.size());
      segments_.push_back({parent, run.begin, run.page * kPageRows, row, row, run.begin});
    }
    parent = segment;
  }
  return parent;
}

// The next `count` tokens of a sequence as rows of the pass.
void Generator::add_rows(Id id, int32_t count) {
  State& state = at(id);
  const int32_t begin = state.table.rows();
  const int32_t end = begin + count;
  const size_t known = state.table.runs().size();
  const bool draws = state.left > 0 && static_cast<size_t>(end) == state.tokens.size();
  RETRO_CHECK(!draws || count == 1);
  int32_t parent = ancestors(state);
  state.table.extend(count);
  const auto runs = state.table.runs();
  for (size_t r = known == 0 ? 0 : known - 1; r < runs.size(); ++r) {
    const PageRun& run = runs[r];
    const int32_t from = std::max(begin, run.begin);
    const int32_t behind = run.begin + run.rows;
    if (from >= behind) continue;
    const auto row = static_cast<int32_t>(rows_tokens_.size());
    for (int32_t p = from; p < behind; ++p) {
      rows_tokens_.push_back(state.tokens[static_cast<size_t>(p)]);
      positions_.push_back(p);
      carry_rows_.push_back(run.page * kPageRows + p - run.begin);
    }
    int32_t& segment = page_segment_[static_cast<size_t>(run.page)];
    if (segment < 0) {
      segment = static_cast<int32_t>(segments_.size());
      segments_.push_back({parent, run.begin, run.page * kPageRows, row, row, from});
    }
    // A page that had tokens already: its segment now has rows, which must stand in their order.
    device::Segment& own = segments_[static_cast<size_t>(segment)];
    own.row_begin = row;
    own.row_end = row + behind - from;
    own.row_position = from;
    own.decoded = draws;
    parent = segment;
  }
  computed_ += count;
  if (!draws) return;
  const auto draw = state.options.first_draw + state.completion.tokens.size();
  queries_.push_back({static_cast<int32_t>(rows_tokens_.size()) - 1, 0});
  draws_.push_back({state.stream->uniform(draw),
                    state.options.temperature == 0 ? 0 : static_cast<float>(1 / state.options.temperature),
                    static_cast<float>(state.options.top_p)});
  drawing_.push_back(id);
}

bool Generator::step() {
  for (auto* v : {&rows_tokens_, &positions_, &carry_rows_}) v->clear();
  segments_.clear();
  queries_.clear();
  draws_.clear();
  drawing_.clear();
  std::fill(page_segment_.begin(), page_segment_.end(), -1);
  const int32_t most = engine_.plan().options.micro_batch;
  const auto missing = [&](Id id) {
    return states_[id] ? static_cast<int32_t>(at(id).tokens.size()) - at(id).table.rows() : 0;
  };
  const auto room = [&] { return most - static_cast<int32_t>(rows_tokens_.size()); };
  for (Id id = 0; id < states_.size() && room() > 0; ++id) {
    if (missing(id) == 1 && at(id).left > 0) add_rows(id, 1);
  }
  for (Id id = 0; id < states_.size() && room() > 0; ++id) {
    // The row that is drawn from stands alone, in the next pass, so that its bits do not depend on the cut.
    const int32_t ready = missing(id) - (states_[id] && at(id).left > 0 ? 1 : 0);
    if (ready > 0) add_rows(id, std::min(ready, room()));
  }
  if (rows_tokens_.empty()) return false;
  draw();
  take_draws();
  return true;
}

void Generator::draw() {
  drawn_.assign(queries_.size(), -1);
  logprobs_.assign(queries_.size(), 0);
  device::PassArgs pass;
  pass.rows = static_cast<int32_t>(rows_tokens_.size());
  pass.tokens = rows_tokens_;
  pass.positions = positions_;
  pass.carry_rows = carry_rows_;
  pass.segments = segments_;
  pass.queries = queries_;
  pass.logprobs = logprobs_;
  pass.head_mode = device::HeadMode::sample;
  pass.draws = draws_;
  pass.sampled = drawn_;
  engine_.forward(pass);
  if (!queries_.empty()) engine_.head(pass);
}

void Generator::take_draws() {
  for (size_t i = 0; i < drawing_.size(); ++i) {
    State& state = at(drawing_[i]);
    const int32_t token = drawn_[i];
    if (token < 0)
      fail(ErrorKind::data, "the model's logits are not finite: the adapter or the model is damaged");
    state.tokens.push_back(token);
    state.completion.tokens.push_back(token);
    state.completion.logprobs.push_back(logprobs_[i]);
    ++sampled_;
    const bool ends = std::binary_search(options_.end_tokens.begin(), options_.end_tokens.end(), token);
    if (ends) state.completion.finish = Finish::end_token;
    state.left = ends ? 0 : state.left - 1;
  }
}

void Generator::refresh_adapter() {
  RETRO_CHECK(pages_.unused() == pages_.count());
  engine_.refresh_adapter();
}

}  // namespace retro::engine
