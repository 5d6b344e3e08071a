// The documents of examples/ are good as they stand.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/prompts.h"
#include "run/document.h"

namespace retro::run {
namespace {

TEST(ExampleDocuments, AreReadAndTheirPromptsAreGood) {
  size_t read = 0, rollouts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RETRO_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    const Document document = load_document(entry.path(), {.model = "base.gguf", .device = {}});
    EXPECT_TRUE(document.warnings.empty());
    ++read;
    if (!document.rolls_out()) continue;
    ++rollouts;
    EXPECT_GE(data::PromptFile(document.rollout().prompts, data::PromptUse::rollout).size(), 200U);
    if (document.evaluation) {
      EXPECT_GE(data::PromptFile(document.evaluation->data, data::PromptUse::evaluation).size(), 200U);
    }
  }
  EXPECT_GE(read, 6U);
  EXPECT_GE(rollouts, 4U);
}

}  // namespace
}  // namespace retro::run
