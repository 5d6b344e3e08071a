// A small run of the whole program: a toy model, conversations, a document.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/document.h"
#include "run/reporter.h"
#include "run/train.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_gguf.h"

namespace retro::test {

/// One conversation as a line of JSON: user and assistant by turns.
inline std::string chat_line(const std::vector<std::string>& turns) {
  std::string line = R"({"messages":[)";
  for (size_t i = 0; i < turns.size(); ++i) {
    line += fmt::format(R"({}{{"role":"{}","content":"{}"}})", i > 0 ? "," : "",
                        i % 2 == 0 ? "user" : "assistant", turns[i]);
  }
  return line + "]}\n";
}

/// `count` records of different lengths.
inline std::string chat_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines +=
        chat_line({fmt::format("question {}?", i * 7),
                   std::string(static_cast<size_t>(3 + i * 5 % 23), 'x') + fmt::format(" answer {}", i)});
  }
  return lines;
}

/// Sections of a document as text; each may be replaced whole.
struct ToyDocument {
  std::string sft;  // keys behind `data`
  std::string lora = "rank = 4\nalpha = 8.0\n";
  std::string training = "epochs = 2\nlr = 1e-2\nctx = 128\nmicro_batch = 128\nmax_grad_norm = 1.0\n";
  std::string rest;  // further sections
  std::string data = "train.jsonl";
  std::string output = "adapter.gguf";

  std::string text() const {
    return fmt::format(
        "[run]\nalgorithm = \"sft\"\n[model]\npath = \"model.gguf\"\n[output]\npath = \"{}\"\n[sft]\ndata = "
        "\"{}\"\n{}"
        "[lora]\n{}[training]\n{}{}",
        output, data, sft, lora, training, rest);
  }
};

constexpr const char* kCheckpointEveryStep =
    "[checkpoint]\ndirectory = \"state\"\nmode = \"steps\"\nevery_steps = 1\nkeep_last = 2\n";

/// A folder with model.gguf and train.jsonl.
class ToyRun {
 public:
  explicit ToyRun(const ToySpec& spec = {}, const std::string& data = chat_lines(12)) {
    write_toy_model(folder_ / "model.gguf", spec);
    put("train.jsonl", data);
  }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string get(const std::filesystem::path& name) const { return read_file(folder_ / name); }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return folder_ / name; }

  run::Document document(const ToyDocument& toy) const {
    return run::parse_document(toy.text(), folder_ / "run.toml");
  }
  run::TrainResult train(const ToyDocument& toy, const run::TrainOptions& options = {}) const {
    run::SilentReporter silent;
    return train(toy, silent, options);
  }
  run::TrainResult train(const ToyDocument& toy, run::Reporter& reporter,
                         const run::TrainOptions& options = {}) const {
    const run::Document parsed = document(toy);
    return run::train(parsed, options, reporter);
  }
  /// The bytes of the adapter that `toy` trains.
  std::string adapter(const ToyDocument& toy) const {
    train(toy);
    return get(toy.output);
  }

 private:
  support::TempFolder folder_;
};

/// Keeps what a run says.
class Heard : public run::Reporter {
 public:
  void note(std::string_view text) override { notes.emplace_back(text); }
  void warn(std::string_view text) override { warnings.emplace_back(text); }
  void line(std::string_view text) override { lines.emplace_back(text); }
  void progress(std::string_view, int64_t, int64_t, std::string_view) override {}

  std::vector<std::string> notes, warnings, lines;
};

}  // namespace retro::test
