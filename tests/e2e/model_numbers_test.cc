// Numbers in a model's metadata that this build cannot compute with, or that no model has: refused before
// anything is trained, by the key or the operation, never computed wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "gguf/writer.h"
#include "tests/e2e/toy_run.h"

namespace retro::test {
namespace {

std::string refusal(const ToySpec& spec) {
  const ToyRun run(spec);
  try {
    run.train({});
  } catch (const Error& error) {
    EXPECT_FALSE(std::filesystem::exists(run / "adapter.gguf"));
    return error.what();
  }
  return "";
}

TEST(ModelNumbers, HeadsOf512AreTrainedAndWiderOnesRefused) {
  ToySpec spec;
  spec.heads = 1;
  spec.kv_heads = 1;
  for (const int64_t head : {512, 514, 640, 1024}) {
    spec.head_dim = head;
    const std::string told = refusal(spec);
    if (head <= 512) {
      EXPECT_EQ(told, "");
    } else {
      EXPECT_NE(told.find(fmt::format("attention heads of {} elements", head)), std::string::npos) << told;
    }
  }
}

// A window longer than every record is no window, however long it is.
TEST(ModelNumbers, AWindowBeyondTheContextIsNoWindow) {
  ToySpec spec;
  spec.architecture = "gemma3";
  spec.sliding_window = 4096;
  ToyDocument toy;
  toy.lora = "rank = 4\nalpha = 8.0\ntargets = [\"k\", \"v\"]\n";
  const std::string expected = ToyRun(spec).adapter(toy);
  spec.sliding_window = 1 << 24;
  // The base's fingerprint, which the adapter names, differs; its tensors do not.
  const std::string adapter = ToyRun(spec).adapter(toy);
  constexpr size_t kTensors = 1024;
  ASSERT_GT(expected.size(), kTensors);
  ASSERT_EQ(adapter.size(), expected.size());
  EXPECT_EQ(adapter.substr(adapter.size() - kTensors), expected.substr(expected.size() - kTensors));
  spec.sliding_window = 2147483647;
  EXPECT_NE(refusal(spec).find("gemma3.attention.sliding_window"), std::string::npos) << refusal(spec);
}

TEST(ModelNumbers, ThatMakeNoSenseAreRefusedByTheirKey) {
  for (const float epsilon : {-1e-5F, NAN, INFINITY, 2.0F}) {
    ToySpec spec;
    spec.rms_epsilon = epsilon;
    EXPECT_NE(refusal(spec).find("layer_norm_rms_epsilon"), std::string::npos) << epsilon;
  }
  for (const float base : {0.0F, -1.0F, NAN, INFINITY}) {
    ToySpec spec;
    spec.rope_freq_base = base;
    EXPECT_NE(refusal(spec).find("rope.freq_base"), std::string::npos) << base;
  }
}

// Rotations and caps that this build does not compute are refused by their key; the same key where it turns
// nothing off or on is no reason to.
TEST(ModelNumbers, ThatAreNotComputedAreRefusedByTheirKey) {
  const auto told = [](const char* architecture, const std::function<void(gguf::Writer&, std::string)>& add) {
    ToySpec spec;
    spec.architecture = architecture;
    spec.more_keys = [&](gguf::Writer& writer) { add(writer, std::string(architecture) + "."); };
    return refusal(spec);
  };
  for (const char* architecture : {"llama", "qwen2", "qwen3", "phi3"}) {
    for (const char* type : {"yarn", "longrope", "llama9"}) {
      if (std::string_view(architecture) == "phi3" && std::string_view(type) == "longrope") continue;
      const std::string error = told(architecture, [&](gguf::Writer& writer, const std::string& prefix) {
        writer.add_string(prefix + "rope.scaling.type", type);
        writer.add_f32(prefix + "rope.scaling.factor", 4);
      });
      EXPECT_NE(error.find(fmt::format("'{}.rope.scaling.type'", architecture)), std::string::npos) << error;
      EXPECT_NE(error.find(type), std::string::npos) << error;
    }
    for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping", "logit_scale",
                            "residual_scale", "attention.scale", "rope.scaling.yarn_beta_fast",
                            "attention.clamp_kqv", "attention.max_alibi_bias"}) {
      const std::string error = told(architecture, [&](gguf::Writer& writer, const std::string& prefix) {
        writer.add_f32(prefix + key, 30);
      });
      EXPECT_NE(error.find(fmt::format("'{}.{}'", architecture, key)), std::string::npos) << key << error;
    }
    EXPECT_EQ(told(architecture,
                   [](gguf::Writer& writer, const std::string& prefix) {
                     writer.add_f32(prefix + "final_logit_softcapping", 0);
                     writer.add_u32(prefix + "expert_count", 0);
                     writer.add_bool(prefix + "attention.causal", true);
                     writer.add_string(prefix + "rope.scaling.type", "none");
                   }),
              "");
  }
  const std::string window = told("qwen2", [](gguf::Writer& writer, const std::string& prefix) {
    writer.add_u32(prefix + "attention.sliding_window", 16);
  });
  EXPECT_NE(window.find("'qwen2.attention.sliding_window'"), std::string::npos) << window;
  const std::string longrope = told("phi3", [](gguf::Writer& writer, const std::string& prefix) {
    writer.add_string(prefix + "rope.scaling.type", "longrope");
  });
  EXPECT_NE(longrope.find("rope_factors_long.weight"), std::string::npos) << longrope;
}

}  // namespace
}  // namespace retro::test
