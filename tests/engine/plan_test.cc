// The memory plan of toy models' programs: no value is written over while it is needed, and the parts sum to
// what is allocated.
#include "graph/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>

#include "engine/engine.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

struct Case {
  std::string name;
  int64_t embedding;  // 256 columns of F32 fill a KiB: rows are padded
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name << ' ' << c.embedding;
}

class ToyPlan : public ::testing::TestWithParam<Case> {
 protected:
  /// Calls check(plan, adapter layout) for every setting that changes the program.
  template <typename Check>
  void for_every_plan(const Check& check) {
    support::TempFolder folder;
    ToySpec spec = toy_model(GetParam().name);
    spec.embedding = GetParam().embedding;
    spec.layers = 5;
    const bool fused = spec.architecture == "phi3";
    write_toy_model(folder / "toy.gguf", spec);
    const model::Model model(folder / "toy.gguf");
    for (const std::string target :
         {"auto", fused ? "qkv" : "q", fused ? "ffn_up" : "v", "ffn_down", "blk.4.*", "none"}) {
      model::AdapterLayout adapter;
      const bool train = target != "none";
      if (train) adapter = model::choose_targets(model, {{target}}, 3, 8, tensor::DType::F16);
      for (const int32_t micro_batch : {1, 7, 64}) {
        for (const int32_t stride : {0, 1, 2, 3, 9}) {
          for (const auto dtype : {tensor::DType::F32, tensor::DType::BF16}) {
            engine::EngineOptions options;
            options.micro_batch = micro_batch;
            options.set_rows = stride % 2 == 0 ? 0 : 100;
            options.train = train;
            options.checkpoint_layers = stride;
            options.checkpoint_dtype = dtype;
            options.fast_activations = !train && stride == 1;
            SCOPED_TRACE(fmt::format("{} micro_batch {} stride {} {}", target, micro_batch, stride,
                                     tensor::dtype_name(dtype)));
            check(engine::plan_engine(model, train ? &adapter : nullptr, options), adapter);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
};

TEST_P(ToyPlan, ValuesAliveTogetherDoNotOverlap) {
  for_every_plan([](const engine::EnginePlan& plan, const model::AdapterLayout&) {
    const auto& program = plan.program;
    // Plays the program over the arena: who wrote each byte last, as pieces by their begin.
    const auto& places = plan.plan.placements;
    ASSERT_EQ(places.size(), program.values.size());
    std::vector<bool> written(places.size(), false);
    std::map<int64_t, std::pair<int64_t, graph::ValueId>> owners;  // begin → end, value
    const auto write = [&](graph::ValueId v) {
      const graph::Placement& p = places[static_cast<size_t>(v)];
      const int64_t end = p.offset + p.bytes;
      for (auto at = owners.begin(); at != owners.end();) {
        const bool apart = at->second.first <= p.offset || at->first >= end || at->second.second == v;
        if (!apart) written[static_cast<size_t>(at->second.second)] = false;
        at = apart ? std::next(at) : owners.erase(at);
      }
      owners[p.offset] = {end, v};
      written[static_cast<size_t>(v)] = true;
    };
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      const graph::Node& node = program.nodes[i];
      for (const graph::ValueId v : node.in) {
        ASSERT_TRUE(v == graph::kNone || written[static_cast<size_t>(v)])
            << "node " << i << " reads " << program.values[static_cast<size_t>(v)].name;
      }
      for (const graph::ValueId v : node.out) {
        if (v != graph::kNone) write(v);
      }
      // What it reads and writes lies apart.
      for (const auto* list : {&node.in, &node.out}) {
        for (const graph::ValueId v : *list) {
          ASSERT_TRUE(v == graph::kNone || written[static_cast<size_t>(v)])
              << "node " << i << " writes over " << program.values[static_cast<size_t>(v)].name;
        }
      }
    }
  });
}

TEST_P(ToyPlan, PlacesAreAlignedWideEnoughAndInTheArena) {
  for_every_plan([](const engine::EnginePlan& plan, const model::AdapterLayout&) {
    int64_t end = 0;
    for (size_t v = 0; v < plan.program.values.size(); ++v) {
      const graph::Value& value = plan.program.values[v];
      const graph::Placement& p = plan.plan.placements[v];
      if (p.bytes == 0) continue;
      const int64_t rows = value.rows > 0 ? value.rows : plan.options.micro_batch;
      ASSERT_EQ(p.offset % 64, 0);
      ASSERT_GE(p.offset, 0);
      ASSERT_GE(p.stride, value.cols);
      ASSERT_NE(graph::row_bytes(value.dtype, p.stride) % 1024, 0);
      ASSERT_GE(p.bytes, graph::row_bytes(value.dtype, p.stride) * rows);
      end = std::max(end, p.offset + p.bytes);
    }
    EXPECT_EQ(end, plan.plan.arena_bytes);
  });
}

/// Counts the bytes that are held of a device that computes nothing.
class CountingDevice final : public device::Device {
 public:
  int64_t held = 0;

  std::string name() const override { return "counting"; }
  std::optional<std::string> unsupported(const device::OpArgs&) const override { return std::nullopt; }
  void* allocate(size_t bytes, const char*) override {
    held += static_cast<int64_t>(bytes);
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void* memory, size_t bytes) override {
    held -= static_cast<int64_t>(bytes);
    std::free(memory);
  }
  void run(const device::OpArgs&, const device::PassArgs&) override {}
  double sum_of_squares(std::span<const float>) override { return 0; }
  void adamw(const device::AdamWArgs&) override {}
  void sgd(const device::SgdArgs&) override {}
  void adamw8(const device::AdamW8Args&) override {}
  void gefen(const device::GefenArgs&) override {}
  void combine(const device::CombineArgs&) override {}
};

TEST_P(ToyPlan, PartsSumToWhatIsAllocated) {
  CountingDevice device;
  for_every_plan([&](engine::EnginePlan plan, const model::AdapterLayout& layout) {
    const graph::Plan& p = plan.plan;
    EXPECT_EQ(p.kept_bytes + p.working_bytes + p.logits_bytes, p.arena_bytes);
    EXPECT_GE(p.kept_bytes, 0);
    EXPECT_GE(p.working_bytes, 0);
    EXPECT_GE(p.logits_bytes, 0);
    int64_t tables = 0;
    for (const auto& table : plan.tables)
      tables += static_cast<int64_t>(table->values.size() * sizeof(float));
    const int64_t planned = plan.bytes();
    const model::Adapter adapter = model::make_adapter(layout, 1);
    {
      const engine::Engine engine(device, plan.options.train ? &adapter : nullptr, std::move(plan));
      EXPECT_EQ(device.held + tables, planned);
    }
    EXPECT_EQ(device.held, 0);
  });
}

std::vector<Case> cases() {
  std::vector<Case> result = {{"llama", 256}};
  for (const ToyModel& model : toy_models()) result.push_back({model.name, 32});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Toys, ToyPlan, ::testing::ValuesIn(cases()));

}  // namespace
}  // namespace retro::test
