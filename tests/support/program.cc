#include "tests/support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace retro::test {

namespace {

int status_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void redirect(const std::filesystem::path& path, int flags, int target) {
  const int file = ::open(path.c_str(), flags, 0644);
  if (file < 0 || ::dup2(file, target) < 0) ::_exit(126);
}

}  // namespace

Program::Program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                 const std::string& input)
    : out_(folder / ".stdout"), err_(folder / ".stderr") {
  const std::filesystem::path in = folder / ".stdin";
  std::ofstream(in, std::ios::binary) << input;
  std::ofstream(err_, std::ios::binary) << "";
  std::vector<char*> argv = {const_cast<char*>(RETRO_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  RETRO_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    redirect(in, O_RDONLY, 0);
    redirect(out_, O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(err_, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 2);
    ::execv(RETRO_PROGRAM, argv.data());
    ::_exit(127);
  }
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::string Program::err() const {
  return read_file(err_);
}

bool Program::wait_for(const std::function<bool(const std::string&)>& done) {
  const int watch = ::inotify_init1(IN_CLOEXEC);
  RETRO_CHECK(watch >= 0 && ::inotify_add_watch(watch, err_.c_str(), IN_MODIFY | IN_CLOSE) >= 0);
  bool came = done(err());
  while (!came && pid_ > 0) {
    pollfd ready = {watch, POLLIN, 0};
    // The time limit only serves to notice a process that ended without a word.
    if (::poll(&ready, 1, 200) > 0) {
      char events[4096];
      RETRO_CHECK(::read(watch, events, sizeof events) > 0);
    }
    came = done(err());
    int status = 0;
    if (!came && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      code_ = status_code(status);
      came = done(err());
    }
  }
  ::close(watch);
  return came;
}

void Program::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

Outcome Program::wait() {
  if (pid_ > 0) {
    int status = 0;
    RETRO_CHECK(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    code_ = status_code(status);
  }
  return {code_, read_file(out_), err()};
}

Outcome run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                    const std::string& input) {
  return Program(folder, arguments, input).wait();
}

}  // namespace retro::test
