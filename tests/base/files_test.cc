// Files appear whole or not at all, and grow by whole lines.
#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/error.h"
#include "tests/support/temp_folder.h"

namespace retro {
namespace {

namespace fs = std::filesystem;
using support::TempFolder;

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(OutputFile, WithoutCommitTheOldFileStays) {
  const TempFolder folder;
  write_file(folder / "f", "old");
  { OutputFile(folder / "f").write("new"); }
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(OutputFile, AnyFailureLeavesTheOldFile) {
  const TempFolder folder;
  write_file(folder / "f", "old");
  const std::string large(3 << 20, 'x');
  for (int n = 0;; ++n) {
    int at = n;
    bool reached = false;
    g_write_fault = [&](size_t) {
      if (at-- == 0) {
        reached = true;
        fail(ErrorKind::io, "full");
      }
    };
    const auto write = [&] {
      OutputFile file(folder / "f");
      file.write("head");
      file.write(large);
      file.write("tail");
      file.commit();
    };
    if (n < 4) {
      EXPECT_THROW(write(), Error) << n;
    } else {
      write();
    }
    g_write_fault = nullptr;
    EXPECT_EQ(entries(folder.path()), 1U);
    if (!reached) break;
    EXPECT_EQ(read_file(folder / "f"), "old");
  }
  EXPECT_EQ(read_file(folder / "f"), "head" + large + "tail");
}

TEST(OutputFile, AMissingFolderIsNamed) {
  const TempFolder folder;
  try {
    write_file(folder / "none/f", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find((folder / "none/f").string()), std::string::npos)
        << error.what();
  }
}

TEST(AppendFile, GrowsAndOutlivesItsWriter) {
  const TempFolder folder;
  for (const char* line : {"one\n", "two\n"}) {
    AppendFile file(folder / "f");
    file.append(line);
    file.sync();
  }
  EXPECT_EQ(read_file(folder / "f"), "one\ntwo\n");
}

TEST(AppendFile, ALineThatDoesNotFitIsTakenBack) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {10, 10};  // bytes a file may have
    ::setrlimit(RLIMIT_FSIZE, &limit);
    AppendFile file(folder / "f");
    file.append("12345\n");
    try {
      file.append("1234567\n");
    } catch (const Error&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read_file(folder / "f"), "12345\n");
}

TEST(MappedFile, WhatIsNoFileIsRefused) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(folder / "pipe"), Error);
  EXPECT_THROW(MappedFile(folder.path()), Error);
  EXPECT_THROW(MappedFile(folder / "none"), Error);
  write_file(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(ReadFile, ALimitIsKept) {
  const TempFolder folder;
  write_file(folder / "f", "12345");
  EXPECT_EQ(read_file(folder / "f", 5), "12345");
  EXPECT_THROW(read_file(folder / "f", 4), Error);
}

}  // namespace
}  // namespace retro
