#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/memory_info.h"
#include "cli/commands.h"

namespace {

using namespace retro::cli;

int dispatch(const Arguments& arguments, Progressed& progressed) {
  if (const auto* a = std::get_if<HelpArguments>(&arguments))
    return std::fputs(a->text.c_str(), stdout) < 0 ? 1 : 0;
  if (const auto* a = std::get_if<TrainArguments>(&arguments)) return run_train(*a, progressed);
  if (const auto* a = std::get_if<NewArguments>(&arguments)) return run_new(*a);
  if (const auto* a = std::get_if<PreviewArguments>(&arguments)) return run_preview(*a);
  if (const auto* a = std::get_if<PlanArguments>(&arguments)) return run_plan(*a);
  if (const auto* a = std::get_if<BenchArguments>(&arguments)) return run_bench(*a, progressed);
  if (const auto* a = std::get_if<ChatArguments>(&arguments)) return run_chat(*a, progressed);
  return run_inspect(std::get<InspectArguments>(arguments));
}

int exit_code(const retro::Error& error, const Progressed& progressed) {
  if (error.kind() == retro::ErrorKind::interrupted) return 130;
  if (error.kind() == retro::ErrorKind::internal) return 1;
  return progressed.started ? 1 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  Progressed progressed;
  (void)retro::program_file_bytes();
  try {
    return dispatch(parse_arguments(argc, argv), progressed);
  } catch (const retro::Error& error) {
    std::fprintf(stderr, "retrograd: %s\n", error.what());
    return exit_code(error, progressed);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "retrograd: out of memory; `retrograd plan` shows what a run takes and what lowers it\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "retrograd: %s\n", error.what());
    return 1;
  }
}
