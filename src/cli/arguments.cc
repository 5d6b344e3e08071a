#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "cli/json_output.h"
#include "run/nearest.h"

namespace retro::cli {

namespace {

// Commands of the whole program that later builds bring.
constexpr std::array<std::string_view, 11> kLater = {"serve",   "preflight", "distill-teacher", "collect",
                                                     "tools",   "scenarios", "judge",           "merge",
                                                     "convert", "view",      "profile"};

constexpr std::array<std::string_view, 7> kCommands = {"train", "new",  "preview", "plan",
                                                       "bench", "chat", "inspect"};

constexpr const char* kExamples = R"(
Examples:
  retrograd inspect --model base.gguf
  retrograd new sft --model base.gguf --data train.jsonl --out run.toml
  retrograd preview run.toml
  retrograd train run.toml
  retrograd bench run.toml --adapter adapter.gguf
  retrograd chat run.toml --compare
)";

void add_common(CLI::App& app, CommonArguments& common) {
  app.add_option("--model", common.model, "base GGUF, in place of the document's");
  app.add_option("--device", common.device, "auto, cpu or gpu")->check(CLI::IsMember({"auto", "cpu", "gpu"}));
}

// The result comes at the very end, and must have a place to go then.
std::string check_result_file(const std::string& file) {
  std::error_code error;
  if (file.empty()) return "names no file";
  if (std::filesystem::is_directory(file, error)) return file + " is a folder; name a file in it";
  const auto folder = behind_links(file).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return "";
  return "the folder " + folder.string() + " does not exist; create it, or name another file";
}

void add_json(CLI::App& app, std::optional<std::string>& json) {
  app.add_option("--json", json,
                 "also write the result as one JSON object to this file; - is standard output")
      ->check(check_result_file);
}

const CLI::Range kCount(int64_t{1}, int64_t{1} << 40);

// CLI::Range lets nan through.
CLI::Option* limit(CLI::Option* option, double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = 0;
    const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
    if (good && value >= low && value <= high) return std::string();
    return fmt::format("'{}' is no number from {} to {}", text, low, high);
  };
  return option->check(check, fmt::format("from {} to {}", low, high));
}

CLI::App* add(CLI::App& app, const char* name, const char* what, const char* example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(std::string("\nExample:\n  ") + example);
  return command;
}

void add_train(CLI::App& app, TrainArguments& a) {
  CLI::App* c = add(app, "train", "run the algorithm of a document", "retrograd train run.toml --resume");
  c->add_option("CONFIG", a.config, "run document (TOML)")->required();
  c->add_option("--resume", a.state, "continue from a checkpoint: the newest, or the one named")
      ->type_name("[CHECKPOINT]")
      ->expected(0, 1);
  add_common(*c, a.common);
  add_json(*c, a.json);
  c->callback([c, &a] {
    a.resume = c->count("--resume") > 0;
    if (a.state && a.state->empty()) a.state.reset();
  });
}

void add_new(CLI::App& app, NewArguments& a) {
  CLI::App* c = add(app, "new", "write a commented starter document that fits this machine",
                    "retrograd new sft --model base.gguf --data train.jsonl --out run.toml");
  c->add_option("ALGORITHM", a.algorithm, "sft, ppo or grpo")->required();
  c->add_option("--data", a.data, "training data");
  c->add_option("--out", a.out, "where the document goes; without it, standard output");
  add_common(*c, a.common);
}

void add_preview(CLI::App& app, PreviewArguments& a) {
  CLI::App* c =
      add(app, "preview", "show records as the run will see them", "retrograd preview run.toml --ids");
  c->add_option("CONFIG", a.config, "run document (TOML)")->required();
  c->add_option("--records", a.records, "how many to show")->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  c->add_flag("--ids", a.ids, "show token ids");
  c->add_option("--data", a.data, "another data file");
  add_common(*c, a.common);
}

void add_plan(CLI::App& app, PlanArguments& a, std::string& memory) {
  CLI::App* c =
      add(app, "plan", "print the memory a run will take, by part", "retrograd plan run.toml --memory 2GiB");
  c->add_option("CONFIG", a.config, "run document (TOML)")->required();
  c->add_option("--memory", memory, "say which settings make the run fit this much, as 8GiB");
  c->add_flag("--write", a.write, "with --memory: write those settings into the document");
  add_common(*c, a.common);
  add_json(*c, a.json);
}

void add_bench(CLI::App& app, BenchArguments& a) {
  CLI::App* c =
      add(app, "bench", "evaluate without training", "retrograd bench run.toml --adapter adapter.gguf");
  c->add_option("CONFIG", a.config, "run document (TOML)")->required();
  c->add_option("--data", a.data, "another data file");
  c->add_option("--adapter", a.adapter, "also evaluate with this adapter, on the same examples");
  c->add_option("--limit", a.limit, "at most so many examples")->check(kCount);
  c->add_option("--format", a.format, "auto, text or jsonl")->check(CLI::IsMember({"auto", "text", "jsonl"}));
  c->add_option("--ctx", a.ctx, "longest example in tokens")->check(kCount);
  add_common(*c, a.common);
  add_json(*c, a.json);
}

void add_chat(CLI::App& app, ChatArguments& a) {
  CLI::App* c = add(app, "chat", "talk to the model", "retrograd chat run.toml --compare --temp 0");
  c->add_option("TARGET", a.target, "run document (TOML) or model (GGUF)")->required();
  auto* adapter = c->add_option("--adapter", a.adapter, "adapter; a document's own output is the default");
  c->add_flag("--compare", a.compare, "show the base's answer and the adapter's");
  c->add_flag("--base-only", a.base_only, "leave the document's adapter out")->excludes(adapter);
  c->add_option("--system", a.system, "system prompt");
  limit(c->add_option("--temp", a.temperature, "temperature; 0 is greedy"), 0, 100);
  limit(c->add_option("--top-p", a.top_p, "nucleus sampling"), 0, 1);
  c->add_option("--max-new-tokens", a.max_new_tokens, "longest answer")->check(kCount);
  c->add_option("--seed", a.seed, "seed of the sampling");
  c->add_option("--ctx", a.ctx, "longest conversation in tokens")->check(kCount);
  add_common(*c, a.common);
}

void add_inspect(CLI::App& app, InspectArguments& a) {
  CLI::App* c =
      add(app, "inspect", "show a model: architecture, tokenizer, template, tensors, LoRA targets, device",
          "retrograd inspect --model base.gguf");
  add_common(*c, a.common);
  add_json(*c, a.json);
}

void check_command(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::string_view name = argv[1];
  if (std::find(kLater.begin(), kLater.end(), name) != kLater.end()) {
    fail(ErrorKind::config,
         "'{}' is not available in this build; it has train, new, preview, plan, bench, chat and inspect",
         name);
  }
  if (std::find(kCommands.begin(), kCommands.end(), name) == kCommands.end()) {
    fail(ErrorKind::config, "no command '{}'; did you mean '{}'? `retrograd --help` lists them", name,
         run::nearest(name, kCommands));
  }
}

Arguments parse(int argc, const char* const* argv) {
  CLI::App app("retrograd trains LoRA adapters directly on GGUF models.", "retrograd");
  app.set_version_flag("--version", "retrograd 0.1.0");
  app.require_subcommand(1);
  app.footer(kExamples);

  TrainArguments train;
  NewArguments starter;
  PreviewArguments preview;
  PlanArguments plan;
  std::string memory;
  BenchArguments bench;
  ChatArguments chat;
  InspectArguments inspect;
  add_train(app, train);
  add_new(app, starter);
  add_preview(app, preview);
  add_plan(app, plan, memory);
  add_bench(app, bench);
  add_chat(app, chat);
  add_inspect(app, inspect);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto used = app.get_subcommands();
    return HelpArguments{used.empty() ? app.help() : used.front()->help("retrograd")};
  } catch (const CLI::CallForVersion& version) {
    return HelpArguments{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    const auto used = app.get_subcommands();
    fail(ErrorKind::config, "{}\nrun `retrograd {}--help` for the words that fit", error.what(),
         used.empty() ? "" : used.front()->get_name() + " ");
  }
  if (!memory.empty()) plan.memory = parse_bytes(memory);
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "train") return train;
  if (command == "new") return starter;
  if (command == "preview") return preview;
  if (command == "plan") return plan;
  if (command == "bench") return bench;
  if (command == "chat") return chat;
  return inspect;
}

// What no option can tell on its own.
void check(const Arguments& arguments) {
  const auto check_device = [](const auto& command) {
    if constexpr (requires { command.common; }) {
      if (command.common.device == "gpu")
        fail(ErrorKind::config, "--device gpu: this build has no GPU device yet; use --device cpu");
    }
  };
  std::visit(check_device, arguments);
  const auto* plan = std::get_if<PlanArguments>(&arguments);
  if (plan != nullptr && plan->write && !plan->memory)
    fail(ErrorKind::config, "--write goes with --memory, as --memory 8GiB --write");
  const auto* chat = std::get_if<ChatArguments>(&arguments);
  if (chat != nullptr && chat->common.model && chat->target.extension() != ".toml") {
    fail(ErrorKind::config,
         "chat {} --model {}: --model stands in for the model of a run document (.toml); name one model",
         chat->target.string(), chat->common.model->string());
  }
}

}  // namespace

Arguments parse_arguments(int argc, const char* const* argv) {
  check_command(argc, argv);
  Arguments arguments = parse(argc, argv);
  check(arguments);
  return arguments;
}

int64_t parse_bytes(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  constexpr std::array<std::pair<std::string_view, double>, 12> kUnits = {{{"", 1},
                                                                           {"B", 1},
                                                                           {"K", 0x1p10},
                                                                           {"KiB", 0x1p10},
                                                                           {"M", 0x1p20},
                                                                           {"MiB", 0x1p20},
                                                                           {"G", 0x1p30},
                                                                           {"GiB", 0x1p30},
                                                                           {"KB", 1e3},
                                                                           {"MB", 1e6},
                                                                           {"GB", 1e9},
                                                                           {"TiB", 0x1p40}}};
  const auto at = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
  const bool ok = error == std::errc() && at != kUnits.end() && std::isfinite(number) && number > 0;
  if (!ok || number * at->second > 0x1p62) {
    fail(ErrorKind::config, "--memory: '{}' is no amount of memory; write it as 8GiB or 512MiB", text);
  }
  return static_cast<int64_t>(number * at->second);
}

std::string format_bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.2f} GiB", value * 0x1p-30);
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", value * 0x1p-20);
  return fmt::format("{:.1f} KiB", value * 0x1p-10);
}

}  // namespace retro::cli
