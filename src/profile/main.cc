// profile: a short run of a document, and where its time and memory go.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/memory_info.h"
#include "bench/peak.h"
#include "profile/report.h"
#include "profile/watch.h"
#include "run/document.h"
#include "run/interrupt.h"
#include "run/train.h"

namespace retro::profile {
namespace {

struct Arguments {
  std::filesystem::path config;
  std::optional<std::filesystem::path> model;
  std::optional<std::string> device;
  int64_t updates = 1, group_size = 4, epochs = 1, prompts = 3;
  std::optional<int64_t> micro_batch, max_new_tokens;
  bool full = false;
  std::optional<std::string> json;
};

/// A folder for what the run writes; it goes with it.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "retrograd-profile-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      fail(ErrorKind::io, "{}: a folder for the run's output cannot be made; set TMPDIR", name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The document as it is run: shorter, and without anything that outlives it.
void adapt(run::Document& document, const Arguments& arguments, const std::filesystem::path& scratch) {
  document.output.path = scratch / "adapter.gguf";
  document.checkpoint.reset();
  document.evaluation.reset();
  document.observe.reset();
  document.metrics = {};
  document.training.lr_scheduler = run::Schedule::constant;
  document.training.warmup_steps = 0;
  if (arguments.micro_batch) document.training.micro_batch = *arguments.micro_batch;
  if (arguments.max_new_tokens) document.grpo.sampling.max_new_tokens = *arguments.max_new_tokens;
  document.grpo.max_stalled_updates = 0;
  if (arguments.full) return;
  document.grpo.updates = arguments.updates;
  document.grpo.group_size = arguments.group_size;
  document.grpo.grpo_epochs = arguments.epochs;
  document.grpo.prompts_per_update = arguments.prompts;
  document.grpo.dynamic_sampling.reset();
  document.training.generation_concurrency =
      std::min(document.training.generation_concurrency, document.answers_per_update());
}

class Lines : public run::SilentReporter {
 public:
  void note(std::string_view text) override { fmt::print(stderr, "{}\n", text); }
  void warn(std::string_view text) override { fmt::print(stderr, "warning: {}\n", text); }
};

void refuse_others(const run::Document& document) {
  if (document.run.algorithm == run::Algorithm::grpo) return;
  fail(ErrorKind::config,
       "{}: profile runs algorithm = \"grpo\"; for steps of \"sft\" there is `retrograd-bench train`",
       run::place(document, "run.algorithm"));
}

int run(const Arguments& arguments) {
  run::Document document = run::load_document(arguments.config, {arguments.model, arguments.device});
  refuse_others(document);
  const Scratch scratch;
  adapt(document, arguments, scratch.path());
  const Machine machine{document.training.threads, bench::fma_peak_of(document.training.threads, 0.3),
                        bench::read_bandwidth(document.training.threads, 0.5)};
  Watch watch;
  Lines reporter;
  run::TrainOptions options;
  options.probe = &watch;
  const double start = bench::wall_seconds();
  const run::InterruptGuard guard("\nstopping; once more stops at once\n");
  const run::TrainResult result = run::train(document, options, reporter);
  const nlohmann::ordered_json report =
      make_report(document, watch, machine, bench::wall_seconds() - start, result.peak_rss_bytes);
  const bool only_json = arguments.json && *arguments.json == "-";
  if (!only_json) print_report(report);
  if (arguments.json) {
    std::FILE* out = only_json ? stdout : std::fopen(arguments.json->c_str(), "w");
    if (out == nullptr) fail(ErrorKind::io, "--json: {} cannot be written", *arguments.json);
    fmt::print(out, "{}\n", report.dump(2));
    if (std::fflush(out) != 0) fail(ErrorKind::io, "--json: {} cannot be written", *arguments.json);
    if (!only_json) std::fclose(out);
  }
  return result.interrupted ? 130 : 0;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Runs a short workload of a grpo document and says where time and memory go.", "profile");
  Arguments a;
  app.add_option("config", a.config, "the run document")->required();
  app.add_option("--model", a.model, "the base GGUF, in place of [model].path");
  app.add_option("--device", a.device, "auto, cpu or gpu");
  app.add_option("--updates", a.updates, "updates to run")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--group-size", a.group_size, "answers to a prompt")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  app.add_option("--epochs", a.epochs, "grpo_epochs")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--prompts", a.prompts, "prompts of an update")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--micro-batch", a.micro_batch, "tokens of a pass")->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-new-tokens", a.max_new_tokens, "tokens of an answer")->check(CLI::Range(1, 1 << 20));
  app.add_flag("--full", a.full, "the document as written");
  app.add_option("--json", a.json,
                 "also write the report to this file; - is standard output, and then nothing else");
  app.footer("Example:\n  profile examples/smoke_tiny_grpo.toml --model base.gguf");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return run(a);
  } catch (const Error& error) {
    fmt::print(stderr, "profile: {}\n", error.what());
    if (error.kind() == ErrorKind::interrupted) return 130;
    return error.kind() == ErrorKind::config || error.kind() == ErrorKind::data ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "profile: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace retro::profile

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  (void)retro::program_file_bytes();
  return retro::profile::parse_and_run(argc, argv);
}
