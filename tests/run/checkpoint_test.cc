// A checkpoint comes back bit for bit, and a damaged one is refused by name with another offered.
#include "run/checkpoint.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/run/checkpoint_case.h"
#include "tests/support/temp_folder.h"

namespace retro::run {
namespace {

namespace fs = std::filesystem;
using ::retro::support::TempFolder;
using ::testing::Test;

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Checkpoint, ComesBackBitForBit) {
  const TempFolder folder;
  const SampleState sample(12);
  save_step_checkpoint(folder.path(), sample.content(), std::nullopt);
  const fs::path state = folder / "step-000000000012.state";
  EXPECT_EQ(step_state_path(folder.path(), 12), state);
  const LoadedCheckpoint loaded = load_checkpoint(state);
  EXPECT_EQ(loaded.path, state);
  expect_same(loaded, sample);
  EXPECT_EQ(read_file(folder / "step-000000000012.gguf"), sample.adapter());
  EXPECT_EQ(names(folder.path()), "step-000000000012.gguf step-000000000012.state");
}

TEST(Checkpoint, OneWithoutAdapterHasNone) {
  const TempFolder folder;
  const SampleState sample(1);
  CheckpointContent content = sample.content();
  content.write_adapter = nullptr;
  save_step_checkpoint(folder.path(), content, std::nullopt);
  EXPECT_EQ(names(folder.path()), "step-000000000001.state");
}

TEST(Checkpoint, FolderIsCreatedAndProbed) {
  const TempFolder folder;
  const fs::path deep = folder / "a/b";
  prepare_checkpoint_directory(deep);
  EXPECT_TRUE(fs::is_directory(deep));
  EXPECT_EQ(names(deep), "");
  write_bytes(folder / "file", "x");
  const std::string message = message_of([&] { prepare_checkpoint_directory(folder / "file/sub"); });
  EXPECT_TRUE(mentions(message, (folder / "file/sub").string())) << message;
}

TEST(Checkpoint, NewestIsTheHighestStepThenTheBest) {
  const TempFolder folder;
  EXPECT_EQ(newest_checkpoint(folder / "missing"), std::nullopt);
  EXPECT_EQ(newest_checkpoint(folder.path()), std::nullopt);
  save_best_checkpoint(folder.path(), SampleState(30).content());
  EXPECT_EQ(newest_checkpoint(folder.path()), folder / "best.state");
  for (const uint64_t step : {5, 20, 9}) {
    save_step_checkpoint(folder.path(), SampleState(step).content(), std::nullopt);
  }
  EXPECT_EQ(newest_checkpoint(folder.path()), folder / "step-000000000020.state");
  expect_same(load_checkpoint(folder / "best.state"), SampleState(30));
}

TEST(Checkpoint, PruningKeepsTheNewestUpToTheOneWritten) {
  const TempFolder folder;
  save_step_checkpoint(folder.path(), SampleState(90).content(), std::nullopt);
  for (const uint64_t step : {1, 2, 3, 4}) {
    save_step_checkpoint(folder.path(), SampleState(step).content(), 2);
  }
  // Step 90 is of a run that went further: it is not what makes room.
  EXPECT_EQ(names(folder.path()),
            "step-000000000003.gguf step-000000000003.state step-000000000004.gguf step-000000000004.state "
            "step-000000000090.gguf step-000000000090.state");
  save_step_checkpoint(folder.path(), SampleState(5).content(), 0);
  EXPECT_EQ(names(folder.path()),
            "step-000000000005.gguf step-000000000005.state step-000000000090.gguf step-000000000090.state");
}

TEST(Checkpoint, SameStepIsReplaced) {
  const TempFolder folder;
  save_step_checkpoint(folder.path(), SampleState(7, 1).content(), 3);
  save_step_checkpoint(folder.path(), SampleState(7, 2).content(), 3);
  expect_same(load_checkpoint(step_state_path(folder.path(), 7)), SampleState(7, 2));
  EXPECT_EQ(read_file(step_adapter_path(folder.path(), 7)), SampleState(7, 2).adapter());
  EXPECT_EQ(names(folder.path()), "step-000000000007.gguf step-000000000007.state");
}

TEST(Checkpoint, BestIsReplaced) {
  const TempFolder folder;
  for (const uint64_t step : {10, 20, 30}) save_best_checkpoint(folder.path(), SampleState(step).content());
  expect_same(load_checkpoint(folder / "best.state"), SampleState(30));
  EXPECT_EQ(read_file(best_adapter_path(folder.path())), SampleState(30).adapter());
  EXPECT_EQ(names(folder.path()), "best.gguf best.state");
}

TEST(Checkpoint, OldBestStandsInForAMissingOne) {
  const TempFolder folder;
  save_best_checkpoint(folder.path(), SampleState(10).content());
  fs::rename(folder / "best.state", folder / "best.state.old");
  EXPECT_EQ(newest_checkpoint(folder.path()), folder / "best.state.old");
  expect_same(load_checkpoint(folder / "best.state"), SampleState(10));
  expect_same(load_checkpoint(folder / "best.state.old"), SampleState(10));
  prepare_checkpoint_directory(folder.path());
  EXPECT_EQ(names(folder.path()), "best.gguf best.state");
  expect_same(load_checkpoint(folder / "best.state/"), SampleState(10));
}

TEST(Checkpoint, LeftoversAreCleanedAndNothingElse) {
  const TempFolder folder;
  save_step_checkpoint(folder.path(), SampleState(1).content(), std::nullopt);
  save_step_checkpoint(folder.path(), SampleState(2).content(), std::nullopt);
  const auto before = snapshot(folder.path());
  fs::copy(folder / "step-000000000001.state", folder / "step-000000000001.state.old");
  fs::remove(folder / "step-000000000001.state.old/manifest.json");
  fs::create_directories(folder / "step-000000000002.state.tmp/nested");
  fs::create_directories(folder / "step-000000000003.state.tmp");
  write_bytes(folder / "step-000000000003.gguf", "of a save that broke off before its folder was renamed");
  fs::create_directories(folder / "step-000000000004.state.deleted");
  write_bytes(folder / "step-000000000004.gguf", "of a removal that broke off");
  write_bytes(folder / "step-000000000005.gguf.tmp", "half");
  write_bytes(folder / "best.state.tmp", "a file in the way of a folder");
  write_bytes(folder / "best.gguf.tmp", "half");
  prepare_checkpoint_directory(folder.path());
  EXPECT_EQ(snapshot(folder.path()), before);

  // Names that are the user's own stay.
  for (const char* name : {"step-5.state.tmp", "step-000000000006.gguf", "notes.tmp", "best.gguf.bak",
                           "step-0000000000x7.state.tmp", "my-best.state.tmp"}) {
    write_bytes(folder / name, "mine");
  }
  const auto mine = snapshot(folder.path());
  prepare_checkpoint_directory(folder.path());
  EXPECT_EQ(snapshot(folder.path()), mine);
}

class Damaged : public Test {
 protected:
  void SetUp() override {
    for (const uint64_t step : {10, 20, 30}) {
      save_step_checkpoint(folder_.path(), SampleState(step).content(), std::nullopt);
    }
  }

  /// The newest is refused naming `file` and saying `fault`, and step 20 is offered.
  void expect_refused(const std::string& file, const std::string& fault) {
    const std::string message = message_of([&] { load_checkpoint(newest_); });
    EXPECT_TRUE(mentions(message, (file.empty() ? newest_ : newest_ / file).string())) << message;
    EXPECT_TRUE(mentions(message, fault)) << message;
    EXPECT_TRUE(mentions(message, "--resume " + previous_.string())) << message;
  }

  TempFolder folder_;
  fs::path newest_ = folder_ / "step-000000000030.state";
  fs::path previous_ = folder_ / "step-000000000020.state";
};

TEST_F(Damaged, WithoutManifestItWasNotFinished) {
  fs::remove(newest_ / "manifest.json");
  expect_refused("", "was not written to its end");
  const std::string message = message_of([&] { newest_checkpoint(folder_.path()); });
  EXPECT_TRUE(mentions(message, newest_.string())) << message;
  EXPECT_TRUE(mentions(message, "--resume " + previous_.string())) << message;
}

TEST_F(Damaged, TruncatedAndMissingFilesAreNamed) {
  for (const char* name : {"weights.f32", "trainer.json", "signature.json"}) {
    const std::string whole = read_file(newest_ / name);
    for (const size_t size : {size_t{0}, size_t{1}, whole.size() - 1}) {
      write_bytes(newest_ / name, whole.substr(0, size));
      expect_refused(name, "it is damaged");
      EXPECT_TRUE(mentions(message_of([&] { newest_checkpoint(folder_.path()); }), name));
    }
    fs::remove(newest_ / name);
    expect_refused(name, "cannot be read");
    write_bytes(newest_ / name, whole);
  }
  expect_same(load_checkpoint(newest_), SampleState(30));
}

TEST_F(Damaged, EveryFlippedBitIsFound) {
  for (const auto& entry : fs::directory_iterator(newest_)) {
    const std::string whole = read_file(entry.path());
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 97) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 4);
      write_bytes(entry.path(), bytes);
      const std::string message = message_of([&] { expect_same(load_checkpoint(newest_), SampleState(30)); });
      // White space between the manifest's fields carries nothing.
      if (!(entry.path().filename() == "manifest.json" && (whole[at] == ' ' || whole[at] == '\n'))) {
        EXPECT_TRUE(mentions(message, entry.path().string())) << at << " " << message;
      }
    }
    write_bytes(entry.path(), whole);
  }
}

TEST_F(Damaged, OffersOnlyWhatIsWhole) {
  fs::remove(newest_ / "manifest.json");
  const std::string weights = read_file(previous_ / "weights.f32");
  write_bytes(previous_ / "weights.f32", std::string(weights.size(), '\0'));
  const std::string message = message_of([&] { load_checkpoint(newest_); });
  EXPECT_TRUE(mentions(message, "--resume " + (folder_ / "step-000000000010.state").string())) << message;
  fs::remove_all(folder_ / "step-000000000010.state");
  const std::string alone = message_of([&] { load_checkpoint(newest_); });
  EXPECT_TRUE(mentions(alone, "start again without --resume")) << alone;
  save_best_checkpoint(folder_.path(), SampleState(15).content());
  const std::string best = message_of([&] { load_checkpoint(newest_); });
  EXPECT_TRUE(mentions(best, "--resume " + (folder_ / "best.state").string())) << best;
}

TEST_F(Damaged, AnotherStepsManifestIsRefused) {
  fs::remove_all(newest_);
  fs::copy(previous_, newest_);
  expect_refused("manifest.json", "is of step 20");
}

TEST_F(Damaged, WhatWasNeverACheckpointIsSaid) {
  const std::string file = message_of([&] { load_checkpoint(folder_ / "step-000000000030.gguf"); });
  EXPECT_TRUE(mentions(file, "init_adapter")) << file;
  const std::string parent = message_of([&] { load_checkpoint(folder_.path()); });
  EXPECT_TRUE(mentions(parent, newest_.string())) << parent;
  const std::string none = message_of([&] { load_checkpoint(folder_ / "step-000000000031.state"); });
  EXPECT_TRUE(mentions(none, "no such checkpoint")) << none;
}

}  // namespace
}  // namespace retro::run
