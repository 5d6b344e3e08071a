#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/memory_info.h"
#include "cli/commands.h"
#include "cli/terminal_text.h"

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

int run(int argc, char** argv, Progressed& progressed) {
  const auto tell = [](const char* what) {
    std::fprintf(stderr, "retrograd: %s\n", without_controls(what).c_str());
  };
  try {
    return dispatch(parse_arguments(argc, argv), progressed);
  } catch (const retro::Error& error) {
    tell(error.what());
    return exit_code(error, progressed);
  } catch (const std::bad_alloc&) {
    tell("out of memory; `retrograd plan` shows what a run takes and what lowers it");
    return 1;
  } catch (const std::exception& error) {
    tell(error.what());
    return 1;
  }
}

// A mapped file that somebody shortens: its lost pages cannot be read, and there is no way back from here.
void on_lost_page(int) {
  constexpr std::string_view kTold =
      "\nretrograd: the model or another file in use was made shorter or cannot be read any more; "
      "checkpoints written "
      "so far are whole\n";
  if (::write(STDERR_FILENO, kTold.data(), kTold.size()) < 0) _exit(1);
  _exit(1);
}

// What is still in the buffer is a result too: a full disk must not pass for success.
bool results_are_out() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  const char* why = errno != 0 ? std::strerror(errno) : "an earlier write failed";
  std::fprintf(stderr, "retrograd: standard output cannot be written, so that results are lost: %s\n", why);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  // A report that nobody can read any more stops no run.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGBUS, on_lost_page);
  Progressed progressed;
  (void)retro::program_file_bytes();
  const int code = run(argc, argv, progressed);
  if (code != 0) return code;
  errno = 0;
  return results_are_out() ? 0 : 1;
}
