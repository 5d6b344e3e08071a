// A reward program for tests, good or bad: helper_program MODE [ARGUMENT] [FIFO]. With FIFO it holds that
// file open for writing, as do the processes that it forks, so that a test sees when all are gone.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

std::string mode, argument;

// The number behind `"key":`, as text.
std::string number_of(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size() + 3;
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

// How often 'a' stands in the completion.
int reward_of(const std::string& line) {
  int count = 0;
  for (size_t at = line.find("\"completion\":\"") + 14; at < line.size() && line[at] != '"'; ++at) {
    count += line[at] == 'a' ? 1 : 0;
  }
  return count;
}

void put(const std::string& line) {
  std::cout << line << '\n' << std::flush;
}

void answer(const std::string& reward, const std::string& batch, const std::string& index,
            const std::string& more = "") {
  std::string line = "{" + reward;
  if (!batch.empty()) line += ", \"_retrograd_batch\": " + batch + ", \"_retrograd_index\": " + index;
  put(line + more + "}");
}

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

void misbehave_before(const std::string& index) {
  if (mode == "crash" && index == argument) {
    std::cerr << "boom at " << index << std::endl;
    std::exit(3);
  }
  if (mode == "abort" && index == argument) std::abort();
  if (mode == "hang" && index == argument) wait_for_ever();
  if (mode == "long") put(std::string(size_t{9} << 20, 'x'));
  if (mode == "endless") {
    for (;;) std::cout << std::string(1 << 16, 'x') << std::flush;
  }
  if (mode == "garbage") put("score: very \x01good\xff");
  if (mode == "stderr") std::cerr << std::string(1 << 20, 'e') << "\nlast words" << std::endl;
}

void one_request(const std::string& line) {
  const std::string batch = number_of(line, "_retrograd_batch");
  std::string index = number_of(line, "_retrograd_index");
  misbehave_before(index);
  if (mode == "few" && index == "1") return;
  if (mode == "swapped" && (index == "0" || index == "1")) index = index == "0" ? "1" : "0";
  std::string reward = "\"reward\": " + std::to_string(reward_of(line));
  if (mode == "answer") reward = argument;
  answer(reward, batch, index, mode == "wide" ? ", \"note\": \"" + std::string(1 << 17, 'n') + "\"" : "");
  if (mode == "many" && index == "1") answer(reward, batch, index);
}

int persistent() {
  std::string line;
  std::getline(std::cin, line);
  if (mode == "greeting") {
    put(argument);
  } else {
    put(line);
  }
  if (mode == "close_stdin") {
    ::close(STDIN_FILENO);
    std::cerr << "no more for me" << std::endl;
    wait_for_ever();
  }
  while (std::getline(std::cin, line)) {
    if (number_of(line, "_retrograd_batch_end").empty()) {
      one_request(line);
    } else if (mode == "many_at_end") {
      put(line + "\n{\"reward\": 1}");
    } else {
      put(line);
    }
  }
  if (mode == "stays") wait_for_ever();
  return 0;
}

int oneshot() {
  std::string line;
  for (int count = 0; std::getline(std::cin, line); ++count) {
    if (argument == "few" && count == 1) continue;
    answer("\"reward\": " + std::to_string(reward_of(line)), "", "");
    if (argument == "many" && count == 1) answer("\"reward\": 0", "", "");
  }
  if (argument == "stays") {
    std::cout << std::flush;
    ::close(STDOUT_FILENO);
    wait_for_ever();
  }
  if (argument != "fails") return 0;
  std::cerr << "graded, but unhappy" << std::endl;
  return 4;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) mode = arguments[1];
  if (count > 2) argument = arguments[2];
  if (count > 3 && ::open(arguments[3], O_WRONLY) < 0) return 9;
  if (argument == "fork") {
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) {
        ::signal(SIGTERM, SIG_IGN);
        wait_for_ever();
      }
    }
  }
  if (argument == "ignore") {
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  }
  return mode == "oneshot" ? oneshot() : persistent();
}
