// Models of several files, and the fingerprint that does not see the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_gguf.h"

namespace retro::gguf {
namespace {

namespace fs = std::filesystem;

/// A folder with a toy model and that model in three parts, whose keys a test may falsify.
class Split : public testing::Test {
 protected:
  void SetUp() override {
    test::write_toy_model(folder_ / "whole.gguf", {});
    whole_ = std::make_unique<Reader>(folder_ / "whole.gguf");
    for (int number = 0; number < 3; ++number) write_part(number);
  }

  fs::path part(int number) const { return folder_ / fmt::format("toy-{:05}-of-00003.gguf", number + 1); }

  struct Keys {
    int number = -1;  // as named
    int count = 3;
    int64_t tensors = -1;  // as many as there are
    std::string extra = {};
    uint32_t alignment = 32;
  };

  void write_part(int number) { write_part(number, Keys()); }

  void write_part(int number, const Keys& keys) {
    Writer writer(keys.alignment);
    if (number == 0) {
      for (const Entry& entry : whole_->entries()) writer.add_entry(entry);
    }
    writer.add_u16("split.no", static_cast<uint16_t>(keys.number < 0 ? number : keys.number));
    writer.add_u16("split.count", static_cast<uint16_t>(keys.count));
    const auto all = static_cast<int64_t>(whole_->tensors().size());
    writer.add_i32("split.tensors.count", static_cast<int32_t>(keys.tensors < 0 ? all : keys.tensors));
    if (!keys.extra.empty()) writer.add_string("general.name", keys.extra);
    const auto tensors = whole_->tensors();
    const size_t third = tensors.size() / 3;
    const size_t end = number == 2 ? tensors.size() : (static_cast<size_t>(number) + 1) * third;
    for (size_t i = static_cast<size_t>(number) * third; i < end; ++i) writer.add_tensor(tensors[i]);
    writer.write(part(number));
  }

  std::string refusal(const fs::path& path) const {
    try {
      Reader model(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model);
      return error.what();
    }
    ADD_FAILURE() << "was opened";
    return {};
  }

  void expect_refused(const fs::path& path, const std::vector<std::string>& says) const {
    const std::string message = refusal(path);
    for (const std::string& text : says) EXPECT_NE(message.find(text), std::string::npos) << message;
  }

  support::TempFolder folder_;
  std::unique_ptr<Reader> whole_;
};

TEST_F(Split, IsReadLikeItsWhole) {
  const Reader model(part(0));
  EXPECT_EQ(model.files().size(), 3U);
  ASSERT_EQ(model.tensors().size(), whole_->tensors().size());
  for (size_t i = 0; i < model.tensors().size(); ++i) {
    const Tensor& a = model.tensors()[i];
    const Tensor& b = whole_->tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dims, b.dims);
    EXPECT_TRUE(std::ranges::equal(a.span(), b.span()));
  }
  EXPECT_EQ(model.get_string("general.architecture"), "llama");
  EXPECT_EQ(model.fingerprint(), whole_->fingerprint());
}

TEST_F(Split, PartsMayHaveTheirOwnAlignment) {
  write_part(1, {.alignment = 128});
  EXPECT_EQ(Reader(part(0)).fingerprint(), whole_->fingerprint());
}

TEST_F(Split, IsNamedByItsFirstPart) {
  expect_refused(part(1), {part(1).string(), "part 2", "3 files", part(0).string()});
}

TEST_F(Split, AMissingPartIsNamed) {
  fs::remove(part(2));
  expect_refused(part(0), {part(0).string(), "part 3 of 3", "missing", part(2).string()});
}

TEST_F(Split, PartsMustBearTheirNames) {
  fs::rename(part(0), folder_ / "renamed.gguf");
  expect_refused(folder_ / "renamed.gguf", {"renamed.gguf", "must be named NAME-00001-of-00003.gguf"});
}

TEST_F(Split, TheFirstPartMayNotCallItselfAnother) {
  fs::copy(part(0), folder_ / "toy-00002-of-00009.gguf");
  expect_refused(folder_ / "toy-00002-of-00009.gguf", {"first of 3 files", "toy-00001-of-00003.gguf"});
}

TEST_F(Split, PartsMustAgree) {
  write_part(1, {.number = 2});
  expect_refused(part(0), {part(1).string(), "split.no", "is 2", "must have 1"});
  write_part(1, {.count = 4});
  expect_refused(part(0), {part(1).string(), "split.count", "is 4", "says 3"});
  write_part(1, {.extra = "Another model"});
  expect_refused(part(0), {part(1).string(), "general.name", "'Another model'", "not of one model"});
  write_part(1, {.extra = "Toy"});
  EXPECT_NO_THROW(Reader{part(0)});
}

TEST_F(Split, TheTensorsAreCounted) {
  write_part(0, {.tensors = 5});
  expect_refused(part(0), {"split.tensors.count", "is 5", "hold 20"});
}

TEST_F(Split, ATensorInTwoPartsIsNamed) {
  fs::remove(part(2));
  Writer writer;
  writer.add_u16("split.no", 2);
  writer.add_u16("split.count", 3);
  writer.add_tensor(whole_->tensors()[0]);
  writer.write(part(2));
  write_part(0, {.tensors = 2 * static_cast<int64_t>(whole_->tensors().size() / 3) + 1});
  expect_refused(part(0), {"token_embd.weight", "two parts"});
}

TEST_F(Split, ACountOfPartsTooLargeForItsTypeIsRefused) {
  Writer writer;
  writer.add_u64("split.no", 0);
  writer.add_u64("split.count", uint64_t{1} << 60);
  writer.write(folder_ / "huge-00001-of-00002.gguf");
  expect_refused(folder_ / "huge-00001-of-00002.gguf", {"split.count", "at most 65535"});
}

TEST_F(Split, AMergedFileKeepsItsCountOfZero) {
  Writer writer;
  for (const Entry& entry : whole_->entries()) writer.add_entry(entry);
  writer.add_u16("split.count", 0);
  for (const Tensor& tensor : whole_->tensors()) writer.add_tensor(tensor);
  writer.write(folder_ / "merged.gguf");
  EXPECT_EQ(Reader(folder_ / "merged.gguf").fingerprint(), whole_->fingerprint());
}

TEST_F(Split, TheFingerprintSeesEveryChangeOfContent) {
  const auto changed = [&](bool entry, bool name, bool type, bool data) {
    Writer writer;
    for (const Entry& one : whole_->entries()) writer.add_entry(one);
    if (entry) writer.add_bool("extra", true);
    std::string bytes;
    for (const Tensor& tensor : whole_->tensors()) {
      if (tensor.name != "output_norm.weight") {
        writer.add_tensor(tensor);
        continue;
      }
      bytes.assign(reinterpret_cast<const char*>(tensor.data), tensor.bytes);
      if (data) bytes[5] = static_cast<char>(bytes[5] ^ 1);
      writer.add_tensor(name ? "output_norm.weighs" : tensor.name, {tensor.cols()},
                        type ? DType::I32 : tensor.dtype, std::as_bytes(std::span(bytes)));
    }
    writer.write(folder_ / "changed.gguf");
    return Reader(folder_ / "changed.gguf").fingerprint();
  };
  const std::string original = whole_->fingerprint();
  EXPECT_EQ(original.size(), 32U);
  EXPECT_EQ(changed(false, false, false, false), original);
  EXPECT_NE(changed(true, false, false, false), original);
  EXPECT_NE(changed(false, true, false, false), original);
  EXPECT_NE(changed(false, false, true, false), original);
  EXPECT_NE(changed(false, false, false, true), original);
}

TEST_F(Split, TheFingerprintTellsItsProgress) {
  uint64_t last = 0;
  const auto progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, whole_->tensor_bytes());
    EXPECT_GT(done, last);
    last = done;
  };
  whole_->fingerprint(progress);
  EXPECT_EQ(last, whole_->tensor_bytes());
  EXPECT_THROW(whole_->fingerprint([](uint64_t, uint64_t) { fail(ErrorKind::interrupted, "stopped"); }),
               Error);
}

}  // namespace
}  // namespace retro::gguf
