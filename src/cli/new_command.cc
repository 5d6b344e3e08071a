#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "base/memory_info.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "run/levers.h"
#include "run/setup.h"
#include "run/starter.h"

namespace retro::cli {

namespace {

namespace fs = std::filesystem;

// The levers that fit this machine for records as long as ctx.
void fit_levers(run::StarterOptions& options, const NewArguments& arguments, const fs::path& document_path,
                run::Reporter& reporter) {
  const run::ModelContext context(*arguments.common.model);
  options.ctx = std::min<int64_t>(options.ctx, context.model.hyperparameters().context_length);
  options.micro_batch = options.ctx;
  const run::Document document =
      run::parse_document(run::starter_document(arguments.algorithm, options), document_path);
  const auto settings = run::lever_settings(
      document, context, run::single_record(static_cast<int32_t>(options.ctx)), run::program_bytes());
  const int64_t available = available_bytes();
  const auto fit = run::first_fit(settings, available);
  const run::LeverSetting& chosen = fit ? *fit : settings.back();
  if (!fit) {
    reporter.warn(
        fmt::format("no setting of the memory levers fits the {} that are available: the smallest, which is "
                    "written, takes {}; take a smaller model",
                    format_bytes(available), format_bytes(chosen.bytes)));
  }
  options.micro_batch = chosen.micro_batch;
  options.gradient_accumulation = chosen.gradient_accumulation;
  options.gradient_checkpointing = chosen.gradient_checkpointing;
  options.checkpoint_dtype = chosen.checkpoint_dtype == run::RetainedType::bf16 ? "bf16" : "f32";
}

}  // namespace

int run_new(const NewArguments& arguments) {
  const fs::path out = arguments.out.value_or("run.toml");
  if (arguments.out && fs::exists(out)) {
    fail(ErrorKind::config, "{}: exists already; name another file with --out, or remove it", out.string());
  }
  const fs::path folder = fs::absolute(out).parent_path();
  if (!fs::is_directory(folder)) {
    fail(ErrorKind::config, "{}: the folder does not exist; create it, or name another with --out",
         folder.string());
  }
  const auto relative = [&](const fs::path& path) {
    return fs::absolute(path).lexically_normal().lexically_proximate(folder.lexically_normal()).string();
  };
  ProgressReporter reporter;
  run::StarterOptions options;
  if (arguments.data) options.data = relative(*arguments.data);
  if (arguments.data && !fs::exists(*arguments.data))
    reporter.warn(fmt::format("{} is not there yet", arguments.data->string()));
  if (arguments.common.model) {
    options.model = relative(*arguments.common.model);
    fit_levers(options, arguments, fs::absolute(out), reporter);
  }
  const std::string text = run::starter_document(arguments.algorithm, options);
  if (!arguments.out) {
    fmt::print("{}", text);
  } else {
    write_file(out, text);
    fmt::print("wrote {}; next: retrograd preview {}\n", out.string(), out.string());
  }
  return 0;
}

}  // namespace retro::cli
