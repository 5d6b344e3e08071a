// The program as its user runs it: a process of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace retro::test {

struct Outcome {
  int code = -1;  // exit status; 128 + n after signal n
  std::string out;
  std::string err;
};

/// A `retrograd` that runs in `folder`; its output goes to files there, its input is `input`.
class Program {
 public:
  Program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
          const std::string& input = "");
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// What it has written to stderr so far.
  std::string err() const;
  /// Waits until `done(err())` or the process ends; returns whether `done` came true.
  bool wait_for(const std::function<bool(const std::string&)>& done);
  void signal(int number) const;
  Outcome wait();

 private:
  std::filesystem::path out_, err_;
  int pid_ = -1;
  int code_ = -1;
};

/// Runs it to its end.
Outcome run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                    const std::string& input = "");

}  // namespace retro::test
