#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <random>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/terminal_text.h"
#include "model/adapter.h"
#include "run/chat_session.h"
#include "run/document.h"
#include "run/interrupt.h"

namespace retro::cli {

namespace {

struct ChatTarget {
  std::filesystem::path model;
  std::optional<std::filesystem::path> adapter;
  int threads = default_threads();
};

// A document brings its model and, unless the base alone is asked for, the adapter it writes.
ChatTarget resolve(const ChatArguments& arguments) {
  ChatTarget target;
  if (arguments.target.extension() == ".toml") {
    const run::Document document =
        run::load_document(arguments.target, {arguments.common.model, arguments.common.device});
    target.model = document.model.path;
    target.threads = document.training.threads;
    target.adapter = document.output.path;
  } else {
    target.model = arguments.target;
  }
  if (arguments.adapter) target.adapter = arguments.adapter;
  if (arguments.base_only) target.adapter.reset();
  if (target.adapter && !arguments.adapter && !std::filesystem::exists(*target.adapter)) {
    fail(ErrorKind::config, "{}: the document's adapter is not there yet; train first, or add --base-only",
         target.adapter->string());
  }
  if (arguments.compare && !target.adapter)
    fail(ErrorKind::config, "--compare needs an adapter: add --adapter FILE");
  return target;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) fail(ErrorKind::io, "standard output cannot be written");
}

void say(run::ChatSession& session, const std::string& message, const char* name, run::Reporter& reporter) {
  if (name != nullptr) print(fmt::format("{}: ", name));
  const run::AnswerEnd end =
      session.answer(message, [](std::string_view text) { print(without_controls(text)); });
  print("\n");
  const std::string whose = name == nullptr ? "" : fmt::format("{}: ", name);
  if (end == run::AnswerEnd::max_new_tokens) reporter.note(fmt::format("({}cut at --max-new-tokens)", whose));
  if (end == run::AnswerEnd::context_full)
    reporter.note(fmt::format("({}cut: --ctx is full; /reset starts anew)", whose));
  if (end == run::AnswerEnd::interrupted) fail(ErrorKind::interrupted, "interrupted");
}

// "/rest", not "/usr/bin is full": one word of letters behind the slash.
bool unknown_command(const std::string& line) {
  return line.size() > 1 && line[0] == '/' &&
         line.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1) == std::string::npos;
}

void converse(run::ChatSession* base, run::ChatSession* adapted, run::Reporter& reporter) {
  const bool both = base != nullptr && adapted != nullptr;
  while (const auto line = read_line("> ")) {
    if (*line == "/exit") return;
    if (*line == "/reset") {
      if (base != nullptr) base->reset();
      if (adapted != nullptr) adapted->reset();
      reporter.note("(a new conversation)");
      continue;
    }
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (unknown_command(*line)) {
      reporter.note(fmt::format("(no command {}; there are /reset and /exit)", *line));
      continue;
    }
    try {
      if (base != nullptr) say(*base, *line, both ? "base" : nullptr, reporter);
      if (adapted != nullptr) say(*adapted, *line, both ? "adapter" : nullptr, reporter);
    } catch (const Error& error) {
      // What does not fit is told and the conversation goes on.
      if (error.kind() != ErrorKind::data) throw;
      reporter.note(error.what());
    }
  }
  if (run::interrupted()) fail(ErrorKind::interrupted, "interrupted");
}

}  // namespace

int run_chat(const ChatArguments& arguments, Progressed& progressed) {
  const ChatTarget target = resolve(arguments);
  ProgressReporter reporter;
  const run::ModelContext context(target.model, static_cast<int64_t>(std::time(nullptr)));
  std::optional<model::LoadedAdapter> adapter;
  if (target.adapter) {
    adapter = model::read_adapter(*target.adapter, context.model);
    for (const auto& line :
         model::describe_loading(*adapter, context.model, context.model.file().fingerprint())) {
      reporter.note(line);
    }
  }
  if (const std::string note = context.template_note(); !note.empty()) reporter.note(note);
  if (!context.chat) {
    reporter.warn("the model has no chat template: what you type is continued as plain text");
    if (arguments.system) fail(ErrorKind::config, "--system needs a model with a chat template");
  }
  run::ChatOptions options;
  options.sampling = {arguments.temperature, arguments.top_p,
                      arguments.seed.value_or(std::random_device()())};
  options.max_new_tokens = arguments.max_new_tokens;
  const int64_t longest = context.model.hyperparameters().context_length;
  const int64_t ctx = arguments.ctx.value_or(std::min<int64_t>(2048, longest));
  if (ctx > longest) {
    fail(ErrorKind::config, "--ctx {}: the model's context is {} tokens; give at most that", ctx, longest);
  }
  options.ctx = static_cast<int32_t>(ctx);
  options.system = arguments.system.value_or("");

  const auto device = device::make_cpu_device(target.threads);
  std::unique_ptr<run::ChatSession> base;
  std::unique_ptr<run::ChatSession> adapted;
  if (!adapter || arguments.compare)
    base = std::make_unique<run::ChatSession>(context, *device, nullptr, options);
  if (adapter) adapted = std::make_unique<run::ChatSession>(context, *device, &adapter->adapter, options);
  progressed.started = true;
  const run::InterruptGuard guard;
  converse(base.get(), adapted.get(), reporter);
  return 0;
}

}  // namespace retro::cli
