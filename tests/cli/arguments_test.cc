// Words of the command line that no command may take in silence.
#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace retro::cli {
namespace {

Arguments parse(const std::vector<const char*>& words) {
  std::vector<const char*> argv = {"retrograd"};
  argv.insert(argv.end(), words.begin(), words.end());
  return parse_arguments(static_cast<int>(argv.size()), argv.data());
}

// What the refusal says; empty where there is none.
std::string refusal(const std::vector<const char*>& words) {
  try {
    parse(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST(Arguments, SamplingTakesFiniteNumbersInTheirRange) {
  for (const char* bad : {"nan", "-nan", "inf", "-1", "100.5", "1e999", "warm", ""}) {
    EXPECT_NE(refusal({"chat", "m.gguf", "--temp", bad}).find("from 0 to 100"), std::string::npos) << bad;
  }
  for (const char* bad : {"nan", "inf", "-0.1", "1.5"}) {
    EXPECT_NE(refusal({"chat", "m.gguf", "--top-p", bad}).find("from 0 to 1\n"), std::string::npos) << bad;
  }
  const auto chat = std::get<ChatArguments>(parse({"chat", "m.gguf", "--temp", "0", "--top-p", "1"}));
  EXPECT_EQ(chat.temperature, 0);
  EXPECT_EQ(chat.top_p, 1);
}

TEST(Arguments, NoCommandTakesADeviceThatIsNotThere) {
  const std::vector<std::vector<const char*>> commands = {{"train", "run.toml"},
                                                          {"new", "sft"},
                                                          {"preview", "run.toml"},
                                                          {"plan", "run.toml"},
                                                          {"bench", "run.toml"},
                                                          {"chat", "m.gguf"},
                                                          {"inspect"}};
  for (std::vector<const char*> words : commands) {
    words.insert(words.end(), {"--device", "gpu"});
    EXPECT_EQ(refusal(words), "--device gpu: this build has no GPU device yet; use --device cpu") << words[0];
    words.back() = "cpu";
    EXPECT_EQ(refusal(words), "") << words[0];
  }
}

TEST(Arguments, ChatHasOneModel) {
  const std::string told = refusal({"chat", "absent.gguf", "--model", "model.gguf"});
  EXPECT_NE(told.find("absent.gguf"), std::string::npos) << told;
  EXPECT_NE(told.find("model.gguf"), std::string::npos) << told;
  EXPECT_EQ(refusal({"chat", "run.toml", "--model", "model.gguf"}), "");
}

TEST(Arguments, ResumeStandsAloneOrNamesACheckpoint) {
  EXPECT_FALSE(std::get<TrainArguments>(parse({"train", "run.toml"})).resume);
  const auto newest = std::get<TrainArguments>(parse({"train", "run.toml", "--resume"}));
  EXPECT_TRUE(newest.resume);
  EXPECT_FALSE(newest.state);
  const auto named = std::get<TrainArguments>(parse({"train", "run.toml", "--resume", "state/best.state"}));
  EXPECT_TRUE(named.resume);
  EXPECT_EQ(named.state, "state/best.state");
}

}  // namespace
}  // namespace retro::cli
