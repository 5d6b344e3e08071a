// What `plan` prints is what a run takes, on the real models.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/e2e/toy_run.h"
#include "tests/support/cache.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

struct Setting {
  const char* model;
  int answer_length;  // bytes of each record's answer
  const char* training;
};

class PlannedMemory : public ::testing::TestWithParam<Setting> {};

TEST_P(PlannedMemory, IsWithinFivePercentOfTheMeasuredPeak) {
  const support::TempFolder folder;
  std::string lines;
  for (int i = 0; i < 3; ++i) {
    std::string answer;
    while (static_cast<int>(answer.size()) < GetParam().answer_length)
      answer += fmt::format("{} and then ", i + answer.size());
    lines += chat_line({"Count.", answer + "."});
  }
  std::ofstream(folder / "train.jsonl") << lines;
  std::filesystem::create_symlink(cached(GetParam().model), folder / "model.gguf");
  ToyDocument toy;
  toy.training = GetParam().training;
  toy.sft = "overlong = \"truncate\"\n";
  std::ofstream(folder / "run.toml") << toy.text();

  const Outcome plan = run_program(folder.path(), {"plan", "run.toml", "--json", "-"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Outcome train = run_program(folder.path(), {"train", "run.toml", "--json", "-"});
  ASSERT_EQ(train.code, 0) << train.err;
  const auto planned = nlohmann::json::parse(plan.out).at("total_bytes").get<double>();
  const auto measured = nlohmann::json::parse(train.out).at("peak_rss_bytes").get<double>();
  std::printf("planned %.1f MiB, measured %.1f MiB\n", planned / (1 << 20), measured / (1 << 20));
  EXPECT_LT(std::abs(planned / measured - 1), 0.05);
}

constexpr const char* kSmol = "smollm2-135m-q4_1.gguf";
constexpr const char* kGemma = "gemma3-270m-q4_k_m.gguf";

INSTANTIATE_TEST_SUITE_P(
    RealModels, PlannedMemory,
    ::testing::Values(
        Setting{kSmol, 300, "ctx = 256\nmicro_batch = 256\n"},
        Setting{kSmol, 1200, "ctx = 256\nmicro_batch = 64\n"},
        Setting{kSmol, 1200,
                "ctx = 256\nmicro_batch = 256\ngradient_checkpointing = true\ncheckpoint_dtype = "
                "\"bf16\"\nkv_dtype = \"f32\"\n"},
        Setting{kSmol, 1200,
                "ctx = 256\nmicro_batch = 256\noptimizer = \"sgd\"\nchunked_cross_entropy = false\n"},
        Setting{kSmol, 2400, "ctx = 512\nmicro_batch = 512\n"},
        Setting{kSmol, 600, "ctx = 512\nmicro_batch = 32\n"},
        Setting{
            kSmol, 3600,
            "ctx = 1024\nmicro_batch = 256\ngradient_checkpointing = true\ncheckpoint_dtype = \"bf16\"\n"},
        Setting{
            kSmol, 1200,
            "ctx = 512\nmicro_batch = 128\ngradient_checkpointing = true\ncheckpoint_every_n_layers = 2\n"},
        Setting{kGemma, 1200, "ctx = 512\nmicro_batch = 64\nkv_dtype = \"f32\"\n"},
        Setting{kGemma, 1200,
                "ctx = 256\nmicro_batch = 256\ngradient_checkpointing = true\ncheckpoint_dtype = \"bf16\"\n"},
        Setting{kGemma, 1200, "ctx = 256\nmicro_batch = 128\n"},
        Setting{kGemma, 600, "ctx = 256\nmicro_batch = 256\ngradient_checkpointing = true\n"}));

}  // namespace
}  // namespace retro::test
