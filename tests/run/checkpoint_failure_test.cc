// Nothing lost: at whichever write a save fails or the process dies, a whole checkpoint is there to resume
// from.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "run/checkpoint.h"
#include "tests/run/checkpoint_case.h"
#include "tests/support/temp_folder.h"

namespace retro::run {
namespace {

namespace fs = std::filesystem;
using ::retro::support::TempFolder;

/// Makes renameat2 fail in this process as a file system without RENAME_EXCHANGE does.
void forbid_exchange() {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {filter.size(), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(90);
  }
}

/// Runs `action` in a process of its own; its wait status.
int in_child(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      ::_exit(91);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// Calls `event` at the n-th write, rename or removal from now on.
void at_write(int n, std::function<void()> event) {
  g_write_fault = [n, event = std::move(event)](size_t) mutable {
    if (n-- == 0) event();
  };
}

enum class Kind { step, same_step, pruning, best };

struct Case {
  Kind kind;
  bool exchange;
  const char* name;
};

class BrokenSave : public testing::TestWithParam<Case> {
 protected:
  void prepare(const fs::path& folder) {
    save_step_checkpoint(folder, earlier_.content(), std::nullopt);
    save_step_checkpoint(folder, before_.content(), std::nullopt);
    if (GetParam().kind == Kind::best) save_best_checkpoint(folder, before_.content());
  }

  void save(const fs::path& folder) {
    switch (GetParam().kind) {
      case Kind::best:
        return save_best_checkpoint(folder, after_.content());
      case Kind::pruning:
        return save_step_checkpoint(folder, after_.content(), 1);
      case Kind::step:
      case Kind::same_step:
        return save_step_checkpoint(folder, after_.content(), std::nullopt);
    }
  }

  fs::path state(const fs::path& folder, const SampleState& sample) {
    return GetParam().kind == Kind::best ? folder / "best.state" : step_state_path(folder, sample.step);
  }

  fs::path adapter(const fs::path& folder, const SampleState& sample) {
    return GetParam().kind == Kind::best ? best_adapter_path(folder) : step_adapter_path(folder, sample.step);
  }

  /// What a resume finds is the state of before or after, whole, with an adapter beside it.
  void expect_resumable(const fs::path& folder) {
    if (GetParam().kind != Kind::best) {
      const auto newest = newest_checkpoint(folder);
      ASSERT_TRUE(newest);
      const LoadedCheckpoint loaded = load_checkpoint(*newest);
      const SampleState& sample = holds(loaded, after_) ? after_ : before_;
      expect_same(loaded, sample);
      const std::string beside = read_file(adapter(folder, sample));
      EXPECT_TRUE(beside == before_.adapter() || beside == after_.adapter()) << beside;
    } else {
      const LoadedCheckpoint loaded = load_checkpoint(folder / "best.state");
      expect_same(loaded, holds(loaded, after_) ? after_ : before_);
      const std::string beside = read_file(best_adapter_path(folder));
      EXPECT_TRUE(beside == before_.adapter() || beside == after_.adapter()) << beside;
      expect_same(load_checkpoint(*newest_checkpoint(folder)), before_);
    }
  }

  void expect_failures_leave_the_earlier_ones();

  SampleState earlier_{10};
  SampleState before_{20};
  SampleState after_{GetParam().kind == Kind::same_step ? 20U : 30U, 3};
};

TEST_P(BrokenSave, KilledAtAnyWriteItResumes) {
  const TempFolder clean;
  prepare(clean.path());
  save(clean.path());
  const auto expected = snapshot(clean.path());
  int n = 0;
  for (;; ++n) {
    ASSERT_LT(n, 500);
    const TempFolder folder;
    prepare(folder.path());
    const int status = in_child([&] {
      if (!GetParam().exchange) forbid_exchange();
      at_write(n, [] { ::raise(SIGKILL); });
      save(folder.path());
    });
    const bool finished = WIFEXITED(status);
    ASSERT_TRUE(!finished || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    expect_resumable(folder.path());
    save(folder.path());
    EXPECT_EQ(snapshot(folder.path()), expected) << "killed at " << n;
    if (finished) break;
  }
  EXPECT_GT(n, 10);
}

TEST_P(BrokenSave, KilledAgainWhileCleaningItResumes) {
  const TempFolder clean;
  prepare(clean.path());
  save(clean.path());
  const auto expected = snapshot(clean.path());
  for (int n = 0; n < 30; ++n) {
    const TempFolder folder;
    prepare(folder.path());
    for (const int later : {n, 0, 1, 2}) {
      in_child([&] {
        if (!GetParam().exchange) forbid_exchange();
        at_write(later, [] { ::raise(SIGKILL); });
        save(folder.path());
      });
      expect_resumable(folder.path());
    }
    save(folder.path());
    EXPECT_EQ(snapshot(folder.path()), expected) << "killed at " << n;
  }
}

TEST_P(BrokenSave, FailingAtAnyWriteLeavesTheEarlierOnes) {
  // The filter that forbids the exchange stays with its process.
  const int status = in_child([&] {
    if (!GetParam().exchange) forbid_exchange();
    expect_failures_leave_the_earlier_ones();
    ::_exit(HasFailure() ? 1 : 0);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

void BrokenSave::expect_failures_leave_the_earlier_ones() {
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 500);
    const TempFolder folder;
    prepare(folder.path());
    auto before = snapshot(folder.path());
    bool reached = false;
    at_write(n, [&] {
      reached = true;
      fail(ErrorKind::io, "some/path: cannot write: No space left on device");
    });
    const std::string message = message_of([&] { save(folder.path()); });
    g_write_fault = nullptr;
    if (!message.empty()) {
      EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
      auto after = snapshot(folder.path());
      if (GetParam().kind == Kind::best || GetParam().kind == Kind::same_step) {
        // The adapter is in place before its folder; it is one of the two, whole.
        after.erase(adapter(folder.path(), after_).filename());
        before.erase(adapter(folder.path(), after_).filename());
      }
      EXPECT_EQ(after, before) << "failed at " << n;
    }
    expect_resumable(folder.path());
    save(folder.path());
    expect_same(load_checkpoint(state(folder.path(), after_)), after_);
    if (!reached) break;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenSave,
                         testing::Values(Case{Kind::step, true, "Step"}, Case{Kind::pruning, true, "Pruning"},
                                         Case{Kind::same_step, true, "SameStep"},
                                         Case{Kind::same_step, false, "SameStepByRenames"},
                                         Case{Kind::best, true, "Best"},
                                         Case{Kind::best, false, "BestByRenames"}),
                         [](const auto& of) { return of.param.name; });

TEST(BrokenSaveBySystem, AFullDiskIsToldWithItsPath) {
  const TempFolder folder;
  save_step_checkpoint(folder.path(), SampleState(10).content(), std::nullopt);
  const auto before = snapshot(folder.path());
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};  // bytes a file may have: less than the buffers, more than the texts
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message =
        message_of([&] { save_step_checkpoint(folder.path(), SampleState(20).content(), std::nullopt); });
    const std::string path = (folder / "step-000000000020.state.tmp/weights.f32").string();
    if (message.find(path + ": cannot write: File too large") == std::string::npos) ::_exit(1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(snapshot(folder.path()), before);
}

}  // namespace
}  // namespace retro::run
