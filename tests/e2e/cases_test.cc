// What users of such programs reported, as small runs with the right outcome.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "gguf/reader.h"
#include "model/adapter.h"
#include "model/model.h"
#include "tests/e2e/toy_run.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

ToyDocument with_training(const std::string& training) {
  ToyDocument toy;
  toy.training = training;
  toy.rest = "[metrics]\njsonl = \"metrics.jsonl\"\n";
  return toy;
}

// The values of `key` in metrics.jsonl, of lines of `event`.
std::vector<double> metric(const ToyRun& run, const std::string& event, const std::string& key) {
  std::vector<double> values;
  std::istringstream lines(run.get("metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.at("event") == event && record.contains(key)) values.push_back(record.at(key).get<double>());
  }
  return values;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A byte-order mark, CRLF, a blank line, no last newline and U+2028 in a string are no part of the data.
TEST(Data, IsTheSameHoweverItsLinesEnd) {
  const std::string mark = "\xe2\x80\xa8";  // U+2028, text and no line end
  const std::vector<std::string> lines = {chat_line({"one", "two" + mark + "three"}),
                                          chat_line({"four", "five"}), chat_line({"six", "seven"})};
  const ToyRun plain({}, lines[0] + lines[1] + lines[2]);
  const auto crlf = [](std::string line) { return line.insert(line.size() - 1, "\r"); };
  const std::string last = lines[2].substr(0, lines[2].size() - 1);
  const ToyRun marked({}, "\xef\xbb\xbf" + crlf(lines[0]) + "\r\n" + crlf(lines[1]) + last);
  plain.train(ToyDocument{});
  marked.train(ToyDocument{});
  const auto weights = [](const ToyRun& run) {
    const model::Model model(run / "model.gguf");
    return model::read_adapter(run / "adapter.gguf", model).adapter.weights;
  };
  EXPECT_EQ(weights(plain), weights(marked));
  EXPECT_EQ(plain.get("adapter.gguf"), marked.get("adapter.gguf"));
}

// Cutting a record may leave it without a trained token: it is counted and left out, and the step uses the
// others.
TEST(Truncation, LeavesOutRecordsWithNothingToTrain) {
  const std::string hopeless = chat_line({std::string(200, 'q'), "ok"});
  const std::string normal = chat_line({"hi", "hello there"});
  ToyDocument toy = with_training("epochs = 1\nlr = 1e-2\nctx = 64\nmicro_batch = 64\n");
  toy.sft = "overlong = \"truncate\"\n";
  const ToyRun both({}, hopeless + normal);
  Heard heard;
  both.train(toy, heard);
  bool said = false;
  for (const std::string& warning : heard.warnings)
    said = said || warning.find("left out") != std::string::npos;
  EXPECT_TRUE(said);
  const ToyRun alone({}, normal);
  alone.train(toy);
  EXPECT_EQ(metric(both, "step", "train/loss"), metric(alone, "step", "train/loss"));

  const ToyRun none({}, hopeless);
  EXPECT_NE(error_of([&] { none.train(toy); }).find("no record has a token to train"), std::string::npos);
  const ToyRun evaluated({}, normal);
  evaluated.put("heldout.jsonl", hopeless);
  toy.rest = "[evaluation]\ndata = \"heldout.jsonl\"\n";
  EXPECT_NE(error_of([&] { evaluated.train(toy); }).find("heldout.jsonl"), std::string::npos);
}

// The loss of a step is the mean over its trained tokens, not a mean of means over passes or records.
TEST(Loss, IsTheMeanOverTrainedTokensAtAnyMicroBatch) {
  const std::string data = chat_line({"a", "b"}) + chat_line({"c", std::string(60, 'd')});
  const auto losses = [&](const std::string& passes) {
    const ToyRun run({}, data);
    ToyDocument toy = with_training("epochs = 1\nlr = 1e-2\nctx = 128\nkv_dtype = \"f32\"\n" + passes);
    toy.lora = "rank = 4\nalpha = 8.0\ndtype = \"f32\"\n";
    run.train(toy);
    return std::pair(metric(run, "step", "train/loss"), metric(run, "step", "optimizer/grad_norm"));
  };
  const auto whole = losses("micro_batch = 128\ngradient_accumulation = 1\n");
  ASSERT_EQ(whole.first.size(), 1U);
  for (const char* passes :
       {"micro_batch = 64\ngradient_accumulation = 2\n", "micro_batch = 32\ngradient_accumulation = 4\n"}) {
    const auto cut = losses(passes);
    ASSERT_EQ(cut.first.size(), 1U);
    EXPECT_NEAR(cut.first[0], whole.first[0], 1e-6 * whole.first[0]);
    EXPECT_NEAR(cut.second[0], whole.second[0], 1e-5 * whole.second[0]);
  }
  // Each record's own loss and tokens give the same mean.
  double sum = 0;
  double tokens = 0;
  for (const std::string& record : {chat_line({"a", "b"}), chat_line({"c", std::string(60, 'd')})}) {
    const ToyRun alone({}, record);
    alone.train(with_training("epochs = 1\nlr = 1e-2\nctx = 128\nmicro_batch = 128\nkv_dtype = \"f32\"\n"));
    const double trained = metric(alone, "step", "trained_tokens").at(0);
    sum += metric(alone, "step", "train/loss").at(0) * trained;
    tokens += trained;
  }
  EXPECT_NEAR(whole.first[0], sum / tokens, 1e-6 * whole.first[0]);
}

// Packed records do not see each other: the first step's loss is that of the records alone, in either order.
TEST(Packing, KeepsRecordsApart) {
  const std::string a = chat_line({"x", "yz"});
  const std::string b = chat_line({"another question", "and another answer"});
  const auto sum = [](const std::string& data, bool packing) {
    const ToyRun run({}, data);
    ToyDocument toy = with_training("epochs = 1\nlr = 1e-9\nctx = 128\nmicro_batch = 128\n");
    toy.sft = fmt::format("packing = {}\nshuffle = false\n", packing);
    run.train(toy);
    const auto losses = metric(run, "step", "train/loss");
    const auto tokens = metric(run, "step", "trained_tokens");
    double total = 0;
    for (size_t i = 0; i < losses.size(); ++i) total += losses[i] * tokens[i];
    return std::pair(total, losses.size());
  };
  const auto packed = sum(a + b, true);
  EXPECT_EQ(packed.second, 1U);
  EXPECT_EQ(sum(a + b, false).second, 2U);
  const double alone = sum(a, true).first + sum(b, true).first;
  EXPECT_NEAR(packed.first, alone, 1e-6 * alone);
  EXPECT_NEAR(sum(b + a, true).first, alone, 1e-6 * alone);
}

// The schedule counts steps, not passes, and ends where the formula says.
TEST(Schedule, CountsSteps) {
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += chat_line({"question", std::string(30, 'a')});
  const auto rates = [&](const char* passes) {
    const ToyRun run({}, ten);
    ToyDocument toy = with_training(
        std::string("epochs = 1\nlr = 1e-3\nlr_scheduler = \"cosine\"\nwarmup_steps = 3\nctx = 64\n") +
        passes);
    toy.sft = "packing = false\n";
    run.train(toy);
    return metric(run, "step", "optimizer/learning_rate");
  };
  const auto whole = rates("micro_batch = 64\n");
  ASSERT_EQ(whole.size(), 10U);
  EXPECT_EQ(rates("micro_batch = 16\ngradient_accumulation = 4\n"), whole);
  EXPECT_DOUBLE_EQ(whole[0], 1e-3 / 3);
  EXPECT_DOUBLE_EQ(whole[2], 1e-3);
  EXPECT_NEAR(whole[9], 1e-3 * 0.5 * (1 + std::cos(M_PI * 6 / 7)), 1e-12);
}

// Every assistant turn is trained, whole, with its end, even where texts repeat: spans come from the
// template.
TEST(Masks, AreTheTurnsNotTheirText) {
  const ToyRun run({}, chat_line({"hi", "hi", "assistant", "hi"}));
  ToyDocument toy = with_training("epochs = 1\nlr = 1e-3\nctx = 128\nmicro_batch = 128\n");
  run.train(toy);
  // "hi" is one token or two bytes; each turn ends on <|im_end|> and its newline is the template's.
  const double both = metric(run, "step", "trained_tokens").at(0);
  const ToyRun once({}, chat_line({"hi", "hi"}));
  once.train(toy);
  EXPECT_EQ(both, 2 * metric(once, "step", "trained_tokens").at(0));
}

// A diverging run stops at its first non-finite value and leaves what is on disk alone.
TEST(Divergence, StopsAndKeepsTheOutput) {
  const ToyRun run;
  run.put("adapter.gguf", "an earlier good adapter");
  ToyDocument toy =
      with_training("epochs = 20\nlr = 1e30\nctx = 128\nmicro_batch = 128\nmax_grad_norm = 0.0\n");
  run.put("run.toml", toy.text());
  const Outcome outcome = run_program(run.path(), {"train", "run.toml"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("step "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("finite"), std::string::npos) << outcome.err;
  EXPECT_EQ(run.get("adapter.gguf"), "an earlier good adapter");
}

// An output layer that is the embedding is no target; adapters have LoRA pairs alone.
TEST(Adapter, HoldsPairsAloneAndNoTiedOutput) {
  const ToyRun run;
  ToyDocument toy;
  toy.lora = "targets = [\"output\"]\n";
  EXPECT_NE(error_of([&] { run.train(toy); }).find("output"), std::string::npos);
  toy.lora = "targets = [\"auto\"]\n";
  run.train(toy);
  const gguf::Reader adapter(run / "adapter.gguf");
  for (const auto& tensor : adapter.tensors()) {
    const std::string name(tensor.name);
    EXPECT_TRUE(name.ends_with(".weight.lora_a") || name.ends_with(".weight.lora_b")) << name;
    EXPECT_TRUE(name.starts_with("blk.")) << name;
  }
}

// An adapter that does not belong to the model is refused or flagged, never applied in silence.
TEST(Adapter, OfAnotherBaseIsRefusedOrFlagged) {
  const ToyRun run;
  run.train(ToyDocument{});
  const auto bench = [&](const std::string& adapter) {
    run.put("run.toml", ToyDocument{}.text());
    return run_program(run.path(), {"bench", "run.toml", "--adapter", adapter});
  };
  EXPECT_NE(bench("adapter.gguf").err.find("14 of 14"), std::string::npos) << bench("adapter.gguf").err;

  EXPECT_EQ(bench("model.gguf").code, 2);
  std::string renamed = run.get("adapter.gguf");
  for (size_t at = 0; (at = renamed.find("attn_q", at)) != std::string::npos; ++at)
    renamed.replace(at, 6, "attn_x");
  run.put("renamed.gguf", renamed);
  EXPECT_EQ(bench("renamed.gguf").code, 2);
  EXPECT_NE(bench("renamed.gguf").err.find("attn_x"), std::string::npos) << bench("renamed.gguf").err;

  const ToyRun twin(ToySpec{.seed = 5});
  twin.train(ToyDocument{});
  run.put("twin.gguf", twin.get("adapter.gguf"));
  EXPECT_NE(bench("twin.gguf").err.find("warning"), std::string::npos) << bench("twin.gguf").err;
  EXPECT_NE(bench("twin.gguf").err.find("another base"), std::string::npos) << bench("twin.gguf").err;

  ToySpec wide;
  wide.embedding = 64;
  const ToyRun wider(wide);
  wider.train(ToyDocument{});
  run.put("wider.gguf", wider.get("adapter.gguf"));
  EXPECT_EQ(bench("wider.gguf").code, 2);
  EXPECT_NE(bench("wider.gguf").err.find("blk.0"), std::string::npos) << bench("wider.gguf").err;

  ToyDocument still;
  still.training = "epochs = 1\nlr = 1e-30\nctx = 128\nmicro_batch = 128\n";
  still.output = "zero.gguf";
  run.train(still);
  EXPECT_NE(bench("zero.gguf").err.find("warning"), std::string::npos) << bench("zero.gguf").err;
}

// A run that would not fit stops at its start and names the lever.
TEST(Memory, ThatIsNotThereIsNamedBeforeTheRun) {
  ToyRun run;
  run.put("run.toml", ToyDocument{}.text());
  const Outcome plan = run_program(run.path(), {"plan", "run.toml", "--memory", "1GiB"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  const Outcome none = run_program(run.path(), {"plan", "run.toml", "--memory", "1MiB"});
  EXPECT_EQ(none.code, 2) << none.err;
}

}  // namespace
}  // namespace retro::test
