// Bad input, as a user meets it: one clear error that names file, line or key and what to do, exit code 2,
// and nothing written.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "tests/e2e/toy_run.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

struct BadInput {
  std::string name;
  std::function<void(const ToyRun&, ToyDocument&)> spoil;
  std::vector<std::string> told;  // texts that the error has
};

std::string model_bytes(const ToyRun& run) {
  return run.get("model.gguf");
}

// A GGUF v3 header with these counts and nothing behind it.
std::string header(uint64_t tensors, uint64_t entries) {
  std::string bytes = "GGUF";
  const auto put = [&](uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  };
  put(3, 4);
  put(tensors, 8);
  put(entries, 8);
  return bytes;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  RETRO_CHECK(at != std::string::npos && what.size() == by.size());
  return text.replace(at, what.size(), by);
}

std::vector<BadInput> bad_models() {
  const auto chat = [](const std::string& source) {
    return [source](const ToyRun& run, ToyDocument&) {
      ToySpec spec;
      spec.chat_template = source;
      write_toy_model(run / "model.gguf", spec);
    };
  };
  return {
      {"a truncated file",
       [](const ToyRun& run, ToyDocument&) {
         const std::string bytes = model_bytes(run);
         run.put("model.gguf", bytes.substr(0, bytes.size() / 2));
       },
       {"model.gguf", "tensor"}},
      {"2^60 tensors",
       [](const ToyRun& run, ToyDocument&) { run.put("model.gguf", header(1ULL << 60, 0)); },
       {"model.gguf", "tensors"}},
      {"2^60 keys",
       [](const ToyRun& run, ToyDocument&) { run.put("model.gguf", header(0, 1ULL << 60)); },
       {"model.gguf"}},
      {"an empty file", [](const ToyRun& run, ToyDocument&) { run.put("model.gguf", ""); }, {"model.gguf"}},
      {"no GGUF",
       [](const ToyRun& run, ToyDocument&) { run.put("model.gguf", std::string(4096, 'x')); },
       {"model.gguf", "GGUF"}},
      {"no file",
       [](const ToyRun& run, ToyDocument&) { std::filesystem::remove(run / "model.gguf"); },
       {"model.gguf"}},
      {"an unknown architecture",
       [](const ToyRun& run, ToyDocument&) {
         run.put("model.gguf", replaced(model_bytes(run), std::string("\5\0\0\0\0\0\0\0llama", 13),
                                        std::string("\5\0\0\0\0\0\0\0mamba", 13)));
       },
       {"model.gguf", "mamba", "llama", "gemma3"}},
      {"a template that does not parse",
       chat("{% for m in messages %}{{ m.content }}"),
       {"model.gguf", "tokenizer.chat_template"}},
      {"a template that calls itself",
       chat("{% macro again(m) %}{{ again(m) }}{% endmacro %}{{ again(messages) }}{{ messages[0].content }}"),
       {"chat_template"}},
      {"a template that ranges over 10^14",
       chat("{% for i in range(10000000) %}{% for j in range(10000000) %}{% endfor %}{% endfor %}"),
       {"template"}},
      {"an adapter in place of a model",
       [](const ToyRun& run, ToyDocument&) {
         run.train(ToyDocument{});
         std::filesystem::rename(run / "adapter.gguf", run / "model.gguf");
       },
       {"model.gguf", "adapter"}},
  };
}

std::vector<BadInput> bad_data() {
  const auto line = [](const std::string& text) {
    return [text](const ToyRun& run, ToyDocument&) {
      run.put("train.jsonl", chat_lines(3) + text + "\n" + chat_lines(3));
    };
  };
  return {
      {"a bad role at line 7,312 of 10,000",
       [](const ToyRun& run, ToyDocument&) {
         std::string lines;
         for (int i = 1; i <= 10000; ++i) {
           lines +=
               i == 7312
                   ? R"({"messages":[{"role":"robot","content":"a"},{"role":"assistant","content":"b"}]})"
                     "\n"
                   : chat_line({"a", "b"});
         }
         run.put("train.jsonl", lines);
       },
       {"train.jsonl:7312", "robot", "assistant"}},
      {"an empty file",
       [](const ToyRun& run, ToyDocument&) { run.put("train.jsonl", ""); },
       {"train.jsonl", "no records"}},
      {"blank lines alone",
       [](const ToyRun& run, ToyDocument&) { run.put("train.jsonl", "\n\n \n"); },
       {"train.jsonl"}},
      {"no file", [](const ToyRun&, ToyDocument& toy) { toy.data = "absent.jsonl"; }, {"absent.jsonl"}},
      {"a cut line", line(R"({"messages":)"), {"train.jsonl:4"}},
      {"no object", line("[1,2]"), {"train.jsonl:4"}},
      {"no assistant",
       line(R"({"messages":[{"role":"user","content":"x"}]})"),
       {"train.jsonl:4", "assistant"}},
      {"an empty content",
       line(R"({"messages":[{"role":"user","content":""},{"role":"assistant","content":"x"}]})"),
       {"train.jsonl:4", "content"}},
      {"an unknown field",
       line(R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"mesages":1})"),
       {"train.jsonl:4", "mesages"}},
      {"another shape",
       line(R"({"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]})"),
       {"train.jsonl:4", "convert"}},
      {"invalid UTF-8",
       line("{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"},{\"role\":\"assistant\",\"content\":"
            "\"b\"}]}"),
       {"train.jsonl:4", "UTF-8"}},
      {"deep nesting",
       line(R"({"messages":)" + std::string(100000, '[') + std::string(100000, ']') + "}"),
       {"train.jsonl:4"}},
      {"an over-long record",
       line(chat_line({"q", std::string(500, 'y')})),
       {"train.jsonl:4", "training.ctx", "sft.overlong"}},
  };
}

std::vector<BadInput> bad_documents() {
  const auto training = [](const std::string& text) {
    return [text](const ToyRun&, ToyDocument& toy) { toy.training += text; };
  };
  return {
      {"a misspelt key", training("micro_bach = 4\n"), {"run.toml:", "micro_bach", "micro_batch"}},
      {"a wrong type", training("threads = \"two\"\n"), {"run.toml:", "threads"}},
      {"a step that does not divide ctx",
       [](const ToyRun&, ToyDocument& toy) { toy.training = "ctx = 128\nmicro_batch = 100\n"; },
       {"run.toml:", "micro_batch"}},
      {"a target that matches nothing",
       [](const ToyRun&, ToyDocument& toy) { toy.lora = "targets = [\"blk.9.*\"]\n"; },
       {"run.toml:", "targets", "blk.9."}},
      {"a folder that does not exist",
       [](const ToyRun&, ToyDocument& toy) { toy.output = "absent/adapter.gguf"; },
       {"run.toml:", "[output].path", "absent"}},
      {"the model as output",
       [](const ToyRun&, ToyDocument& toy) { toy.output = "model.gguf"; },
       {"output.path", "model.gguf"}},
      {"a warm-up longer than the run",
       [](const ToyRun&, ToyDocument& toy) {
         toy.training =
             "epochs = 1\nctx = 128\nmicro_batch = 128\nlr_scheduler = \"cosine\"\nwarmup_steps = 50\n";
       },
       {"run.toml:", "warmup_steps", "50"}},
      {"an algorithm of a later build",
       [](const ToyRun&, ToyDocument& toy) { toy.rest = "[grpo]\nx = 1\n"; },
       {"run.toml:", "grpo"}},
      {"a home folder",
       [](const ToyRun&, ToyDocument& toy) { toy.data = "~/train.jsonl"; },
       {"run.toml:", "data", "whole path"}},
      {"metrics in a folder that does not exist",
       [](const ToyRun&, ToyDocument& toy) { toy.rest = "[metrics]\njsonl = \"absent/metrics.jsonl\"\n"; },
       {"run.toml:", "[metrics].jsonl", "absent"}},
      {"the start adapter as output",
       [](const ToyRun& run, ToyDocument& toy) {
         run.train(ToyDocument{.sft = "", .rest = "", .output = "start.gguf"});
         toy.lora = "init_adapter = \"start.gguf\"\n";
         toy.output = "start.gguf";
       },
       {"run.toml:", "lora.init_adapter"}},
      {"no TOML", [](const ToyRun&, ToyDocument& toy) { toy.rest = "[checkpoint\n"; }, {"run.toml:"}},
      {"an init_adapter that is not there",
       [](const ToyRun&, ToyDocument& toy) { toy.lora = "init_adapter = \"absent.gguf\"\n"; },
       {"absent.gguf"}},
      {"an init_adapter that is a model",
       [](const ToyRun&, ToyDocument& toy) { toy.lora = "init_adapter = \"model.gguf\"\n"; },
       {"model.gguf", "adapter"}},
  };
}

void expect_refusal(const BadInput& input) {
  SCOPED_TRACE(input.name);
  const ToyRun run;
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  const std::string before = run.get("model.gguf");
  input.spoil(run, toy);
  run.put("run.toml", toy.text());
  const Outcome outcome = run_program(run.path(), {"train", "run.toml"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& text : input.told) {
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << " is not in:\n" << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(run / "state")) << "something was written";
  EXPECT_FALSE(std::filesystem::exists(run / "adapter.gguf")) << "something was written";
}

TEST(BadInput, Models) {
  for (const BadInput& input : bad_models()) expect_refusal(input);
}

TEST(BadInput, Data) {
  for (const BadInput& input : bad_data()) expect_refusal(input);
}

TEST(BadInput, Documents) {
  for (const BadInput& input : bad_documents()) expect_refusal(input);
}

// D1: all bad lines of a file are told in one go.
TEST(BadInput, EveryBadLineIsNamed) {
  const ToyRun run;
  run.put("train.jsonl", chat_line({"a", "b"}) + "{\"messages\":\n" + chat_line({"c", "d"}) + "[1,2]\n" +
                             R"({"messages":[{"role":"assistant","content":"x"}]})" + "\n");
  run.put("run.toml", ToyDocument{}.text());
  const Outcome outcome = run_program(run.path(), {"train", "run.toml"});
  EXPECT_EQ(outcome.code, 2);
  for (const char* line : {"train.jsonl:2", "train.jsonl:4", "train.jsonl:5"}) {
    EXPECT_NE(outcome.err.find(line), std::string::npos) << outcome.err;
  }
}

TEST(MoreContextThanTheModelHas, IsSaid) {
  const ToyRun run;
  ToyDocument toy;
  toy.training = "ctx = 1024\nmicro_batch = 128\n";
  Heard heard;
  run.train(toy, heard);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("256"), std::string::npos) << heard.warnings[0];
}

// Checkpoints of an earlier run would be taken for this one's.
TEST(EarlierCheckpoints, AreNotMixedWithANewRun) {
  const ToyRun run;
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  run.put("run.toml", toy.text());
  ASSERT_EQ(run_program(run.path(), {"train", "run.toml"}).code, 0);
  const Outcome again = run_program(run.path(), {"train", "run.toml"});
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("--resume"), std::string::npos) << again.err;
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml", "--resume"}).code, 0);
}

TEST(Commands, TellWhatTheyNeed) {
  const ToyRun run;
  EXPECT_EQ(run_program(run.path(), {}).code, 2);
  EXPECT_EQ(run_program(run.path(), {"trian", "run.toml"}).code, 2);
  EXPECT_NE(run_program(run.path(), {"trian", "run.toml"}).err.find("'train'"), std::string::npos);
  EXPECT_EQ(run_program(run.path(), {"train"}).code, 2);
  EXPECT_EQ(run_program(run.path(), {"train", "absent.toml"}).code, 2);
  EXPECT_EQ(run_program(run.path(), {"merge", "--model", "model.gguf"}).code, 2);
  run.put("run.toml", ToyDocument{}.text());
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml", "--device", "gpu"}).code, 2);
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml", "--resume"}).code, 2);
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml", "--json", "absent/result.json"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(run / "adapter.gguf"));
  ::setenv("RETRO_REQUIRE_GPU_RESIDENT", "1", 1);
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml"}).code, 2);
  ::unsetenv("RETRO_REQUIRE_GPU_RESIDENT");
  for (const char* command : {"train", "new", "preview", "plan", "bench", "chat", "inspect"}) {
    const Outcome help = run_program(run.path(), {command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("retrograd " + std::string(command)), std::string::npos) << help.out;
  }
}

}  // namespace
}  // namespace retro::test
