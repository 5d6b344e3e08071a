// The commands: each takes its arguments, does its work through the run layer, and prints.
#pragma once

#include "cli/arguments.h"
#include "run/document.h"

namespace retro::cli {

/// Whether the work itself has begun: an error before that is one of arguments, document, data or model (exit
/// code 2), after it one of the run (exit code 1).
struct Progressed {
  bool started = false;
};

int run_train(const TrainArguments& arguments, Progressed& progressed);
int run_new(const NewArguments& arguments);
int run_preview(const PreviewArguments& arguments);
int run_plan(const PlanArguments& arguments);
int run_bench(const BenchArguments& arguments, Progressed& progressed);
/// The same of a document that samples answers, with what the arguments say in it.
int run_reward_bench(const BenchArguments& arguments, const run::Document& document, Progressed& progressed);
int run_chat(const ChatArguments& arguments, Progressed& progressed);
int run_inspect(const InspectArguments& arguments);

}  // namespace retro::cli
