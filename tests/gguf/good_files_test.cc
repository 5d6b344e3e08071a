// Files at the edge of what the format allows, and what a Reader says of their values.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "gguf/parse.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "tests/gguf/raw_file.h"
#include "tests/support/temp_folder.h"

namespace retro::gguf {
namespace {

using test::as_bytes;
using test::RawFile;

std::filesystem::path temporary(const std::string& name) {
  static const support::TempFolder folder;
  return folder / name;
}

/// The message of the Error that `work` throws.
template <typename Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

#define EXPECT_REFUSAL(expression, ...)                                                   \
  do {                                                                                    \
    const std::string message = refusal([&] { (void)(expression); });                     \
    for (const std::string part : {__VA_ARGS__}) {                                        \
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part; \
    }                                                                                     \
  } while (false)

TEST(GoodFiles, AnEmptyModelIsAModel) {
  const std::string text = RawFile(0, 0).text();
  const Part part = parse(as_bytes(text), "empty.gguf");
  EXPECT_TRUE(part.entries.empty());
  EXPECT_TRUE(part.tensors.empty());
  EXPECT_EQ(part.alignment, 32U);
}

TEST(GoodFiles, Version2IsReadAsVersion3) {
  RawFile file(1, 1, 2);
  file.entry_u32("k", 7).tensor("w", {2, 3}, 0, 0).pad().bytes(24, 1);
  const Part part = parse(as_bytes(file.text()), "v2.gguf");
  EXPECT_EQ(part.version, 2U);
  EXPECT_EQ(part.entries.at(0).value.as_u64(), 7U);
  EXPECT_EQ(part.tensors.at(0).bytes, 24U);
}

TEST(GoodFiles, AnyAlignmentFromEightUp) {
  for (const uint32_t alignment : {8U, 16U, 64U, 4096U}) {
    RawFile file(2, 1);
    file.entry_u32("general.alignment", alignment)
        .tensor("a", {1}, 0, 0)
        .tensor("b", {1}, 0, alignment)
        .pad(alignment);
    const size_t start = file.text().size();
    file.number(1.5F).pad(alignment).number(2.5F);
    const Part part = parse(as_bytes(file.text()), "aligned.gguf");
    EXPECT_EQ(part.alignment, alignment);
    const auto* base = reinterpret_cast<const std::byte*>(file.text().data());
    EXPECT_EQ(part.tensors.at(0).data - base, static_cast<ptrdiff_t>(start));
    EXPECT_EQ(part.tensors.at(1).data - base, static_cast<ptrdiff_t>(start + alignment));
  }
}

TEST(GoodFiles, TensorsMayLieInAnyOrderWithGaps) {
  RawFile file(2, 0);
  file.tensor("late", {1}, 0, 96).tensor("early", {1}, 0, 0).pad().bytes(100);
  const Part part = parse(as_bytes(file.text()), "gaps.gguf");
  EXPECT_EQ(part.tensors.at(0).name, "late");
  EXPECT_EQ(part.tensors.at(0).data - part.tensors.at(1).data, 96);
}

TEST(GoodFiles, ATensorWithoutDimensionsIsOneNumber) {
  RawFile file(1, 0);
  file.tensor("scalar", {}, 0, 0).pad().number(3.0F);
  const Part part = parse(as_bytes(file.text()), "scalar.gguf");
  EXPECT_EQ(part.tensors.at(0).elements(), 1);
}

TEST(GoodFiles, TypesThatCannotBeDecodedAreStillListed) {
  RawFile file(1, 0);
  file.tensor("w", {256, 2}, static_cast<uint32_t>(DType::I16), 0).pad().bytes(1024);
  const Part part = parse(as_bytes(file.text()), "i16.gguf");
  EXPECT_EQ(part.tensors.at(0).bytes, 1024U);
  EXPECT_FALSE(dtype_info(part.tensors.at(0).dtype).decodable);
}

class Values : public testing::Test {
 protected:
  void SetUp() override {
    Writer writer;
    writer.add_u8("u8", 200);
    writer.add_i8("i8", -3);
    writer.add_u32("u32", 4000000000U);
    writer.add_i32("i32", -5);
    writer.add_u64("u64", uint64_t{1} << 40);
    writer.add_i64("i64", 9);
    writer.add_f32("f32", 0.1F);
    writer.add_f64("f64", 0.1);
    writer.add_bool("bool", true);
    writer.add_string("string", "text");
    writer.add_strings("strings", std::vector<std::string>{"a", "", "ccc"});
    writer.add_i32s("i32s", std::vector<int32_t>{1, -1, 3});
    writer.add_u32s("u32s", std::vector<uint32_t>{1, 2});
    writer.add_f32s("f32s", std::vector<float>{0.5F});
    const uint8_t flags[] = {1, 0, 1};
    writer.add_numbers("bools", ValueType::boolean, std::as_bytes(std::span(flags)));
    writer.write(temporary("values.gguf"));
    model_ = std::make_unique<Reader>(temporary("values.gguf"));
  }

  std::unique_ptr<Reader> model_;
};

TEST_F(Values, IntegersOfAnyTypeAreReadWhereTheyFit) {
  EXPECT_EQ(model_->get_u32("u8"), 200U);
  EXPECT_EQ(model_->get_u32("u32"), 4000000000U);
  EXPECT_EQ(model_->get_u32("i64"), 9U);
  EXPECT_EQ(model_->get_i64("i32"), -5);
  EXPECT_EQ(model_->get_i64("u64"), int64_t{1} << 40);
  EXPECT_REFUSAL(model_->get_u32("i8"), "values.gguf: key 'i8'", "i8 -3", "from 0 to 4294967295");
  EXPECT_REFUSAL(model_->get_u32("u64"), "key 'u64'", "1099511627776");
  EXPECT_REFUSAL(model_->get_u32("f32"), "key 'f32'", "f32 0.1", "integer");
  EXPECT_REFUSAL(model_->get_u32("bool"), "key 'bool'", "bool true");
}

TEST_F(Values, OtherTypesMustBeTheOnesAskedFor) {
  EXPECT_EQ(model_->get_f32("f32"), 0.1F);
  EXPECT_EQ(model_->get_f32("f64"), 0.1F);
  EXPECT_TRUE(model_->get_bool("bool"));
  EXPECT_EQ(model_->get_string("string"), "text");
  EXPECT_REFUSAL(model_->get_f32("i32"), "key 'i32'", "i32 -5", "must be an f32");
  EXPECT_REFUSAL(model_->get_bool("u8"), "key 'u8'", "u8 200", "must be a bool");
  EXPECT_REFUSAL(model_->get_string("f32s"), "key 'f32s'", "array of f32 [1] 0.5", "must be a string");
  EXPECT_REFUSAL(model_->get_strings("string"), "key 'string'", "string 'text'", "array of strings");
  EXPECT_REFUSAL(model_->get_i32s("strings"), "key 'strings'", "array of strings [3] 'a', '', 'ccc'",
                 "array of integers");
}

TEST_F(Values, Arrays) {
  const auto strings = model_->get_strings("strings");
  EXPECT_EQ(std::vector<std::string_view>(strings.begin(), strings.end()),
            (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(model_->get_i32s("i32s"), (std::vector<int32_t>{1, -1, 3}));
  EXPECT_EQ(model_->get_f32s("f32s"), std::vector<float>{0.5F});
  EXPECT_EQ(model_->get_bools("bools"), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_REFUSAL(model_->get_u32s("i32s"), "key 'i32s'", "element 1");
  EXPECT_REFUSAL(model_->get_u32s("bools"), "key 'bools'", "array of bool");
  EXPECT_REFUSAL(model_->get_f32s("i32s"), "key 'i32s'", "array of i32");
}

TEST_F(Values, APerLayerSettingIsOneNumberOrOneForEachLayer) {
  EXPECT_EQ(model_->get_u32_per_layer("u8", 3), (std::vector<uint32_t>{200, 200, 200}));
  EXPECT_EQ(model_->get_u32_per_layer("u32s", 2), (std::vector<uint32_t>{1, 2}));
  EXPECT_REFUSAL(model_->get_u32_per_layer("u32s", 3), "key 'u32s'", "2 elements", "3 layers");
}

TEST_F(Values, AnAbsentKeyIsNamedOrHasADefault) {
  EXPECT_EQ(model_->find("none"), nullptr);
  EXPECT_EQ(model_->get_u32("none", 5), 5U);
  EXPECT_EQ(model_->get_f32("none", 0.5F), 0.5F);
  EXPECT_EQ(model_->get_string("none", "x"), "x");
  EXPECT_TRUE(model_->get_bool("none", true));
  EXPECT_REFUSAL(model_->get_u32("none"), "values.gguf: key 'none'", "is missing");
  EXPECT_REFUSAL(model_->get_u32("string", 5), "key 'string'");  // present, of another type: no default
  EXPECT_REFUSAL(model_->tensor("blk.0.w"), "values.gguf: tensor 'blk.0.w'", "is missing");
}

TEST_F(Values, AreShownInALine) {
  EXPECT_EQ(to_text(*model_->find("f32")), "0.1");
  EXPECT_EQ(to_text(*model_->find("bools")), "[3] true, false, true");
  EXPECT_EQ(to_text(*model_->find("string"), 2), "'te…'");
  EXPECT_EQ(to_text(*model_->find("i32s"), 6), "[3] 1, …");
}

TEST(Quoted, ShowsTextAndEscapesTheRest) {
  EXPECT_EQ(quoted("blk.0"), "'blk.0'");
  EXPECT_EQ(quoted("größe ▁词 😀"), "'größe ▁词 😀'");
  EXPECT_EQ(quoted("a\tb\n\x7f"), "'a\\x09b\\n\\x7f'");
  EXPECT_EQ(
      quoted("\xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80 \xe2\x96"),  // overlong, surrogate, above U+10FFFF, cut
      "'\\xc0\\xaf \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80 \\xe2\\x96'");
  EXPECT_EQ(quoted("\xc2\x9b\xe2\x80\xae"),
            "'\\xc2\\x9b\\xe2\\x80\\xae'");  // C1 control, right-to-left override
  EXPECT_EQ(quoted("▁▁▁", 4), "'▁▁…'");
}

TEST(Reader, AMissingFileAndAFolderAreNamed) {
  try {
    Reader("/nowhere/model.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("/nowhere/model.gguf"), std::string::npos);
  }
  EXPECT_THROW(Reader{testing::TempDir()}, Error);
}

TEST(Reader, MovingKeepsEverythingInPlace) {
  Writer writer;
  const std::vector<float> numbers = {1, 2, 3};
  writer.add_string("k", "v");
  writer.add_tensor("w", {3}, DType::F32, numbers);
  writer.write(temporary("moved.gguf"));
  Reader first(temporary("moved.gguf"));
  const std::byte* data = first.tensor("w").data;
  const Reader second(std::move(first));
  EXPECT_EQ(second.tensor("w").data, data);
  EXPECT_EQ(second.get_string("k"), "v");
}

TEST(Cuts, AFileCutAnywhereIsRefused) {
  Writer writer;
  const std::vector<float> numbers(64, 1.0F);
  writer.add_string("general.architecture", "llama");
  writer.add_strings("tokens", std::vector<std::string>{"a", "bb", "ccc"});
  writer.add_f32s("scores", numbers);
  writer.add_tensor("first", {8, 8}, DType::F32, numbers);
  writer.add_tensor("last", {64}, DType::F16, numbers);
  std::string whole;
  writer.write([&](std::span<const std::byte> bytes) {
    whole.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  ASSERT_NO_THROW(parse(as_bytes(whole), "whole.gguf"));
  ASSERT_GE(whole.size(), 500U);
  // The last tensor has no padding behind it (128 bytes), so that no cut leaves a whole model.
  for (size_t i = 0; i < 500; ++i) {
    const std::string cut = whole.substr(0, whole.size() * i / 500);
    EXPECT_THROW(parse(as_bytes(cut), "cut.gguf"), Error) << cut.size();
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_THROW(parse(as_bytes(cut), "cut.gguf"), Error) << size;
  }
}

}  // namespace
}  // namespace retro::gguf
