// What `plan --memory … --write` does to the text of a document.
#include "run/levers.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace retro::run {
namespace {

const std::vector<std::pair<std::string, std::string>> kChanges = {
    {"micro_batch", "64"}, {"gradient_accumulation", "8"}, {"gradient_checkpointing", "true"}};

std::string changed(const std::string& toml) {
  return with_training_keys(toml, "run.toml", kChanges);
}

TEST(TrainingKeys, AreSetWhereTheyStandAndComeFirstWhereNot) {
  EXPECT_EQ(changed("[training]\nepochs = 3\nmicro_batch = 512\n\n[sft]\nmicro_batch = 1\n"),
            "[training]\ngradient_accumulation = 8\ngradient_checkpointing = true\nepochs = 3\n"
            "micro_batch = 64\n\n[sft]\nmicro_batch = 1\n");
}

TEST(TrainingKeys, KeepComments) {
  EXPECT_EQ(changed("# mine\n[training]  # levers\n  micro_batch=512 # half\n"
                    "gradient_accumulation = 1\n# gradient_checkpointing = false\n"),
            "# mine\n[training]  # levers\ngradient_checkpointing = true\nmicro_batch = 64  # half\n"
            "gradient_accumulation = 8\n# gradient_checkpointing = false\n");
}

TEST(TrainingKeys, MakeASectionThatIsMissing) {
  EXPECT_EQ(changed("[run]\nalgorithm = \"sft\""),
            "[run]\nalgorithm = \"sft\"\n\n[training]\nmicro_batch = 64\ngradient_accumulation = 8\n"
            "gradient_checkpointing = true\n");
}

TEST(TrainingKeys, ASectionMayHaveSpacesAndLinesMayEndAsOnWindows) {
  EXPECT_EQ(changed(" [ training ] # x\nepochs = 3\n"),
            " [ training ] # x\nmicro_batch = 64\ngradient_accumulation = 8\ngradient_checkpointing = true\n"
            "epochs = 3\n");
  EXPECT_EQ(
      changed("[training]\r\nmicro_batch = 512\r\n"),
      "[training]\r\ngradient_accumulation = 8\r\ngradient_checkpointing = true\r\nmicro_batch = 64\r\n");
}

// The edit would give a document that does not load, or one that says something else.
TEST(TrainingKeys, ThatAreWrittenOtherwiseAreLeftToTheUser) {
  for (const char* toml : {
           "training = { epochs = 3 }\n",
           "training.epochs = 3\n",
           "[training]\n\"micro_batch\" = 512\n",
           "[training]\n'micro_batch' = 512\n",
           "[\"training\"]\nepochs = 3\n",
           "[training]\ntext = \"\"\"\nmicro_batch = 1\n\"\"\"\n",
           "text = \"\"\"\n[training]\n\"\"\"\n",
           "[training]\nmicro_batch = \"\"\"\n512\"\"\"\n",
       }) {
    try {
      ADD_FAILURE() << toml << "became\n" << changed(toml);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      const std::string told = error.what();
      EXPECT_NE(told.find("run.toml"), std::string::npos) << told;
      EXPECT_NE(told.find("micro_batch = 64, gradient_accumulation = 8, gradient_checkpointing = true"),
                std::string::npos)
          << told;
    }
  }
}

}  // namespace
}  // namespace retro::run
