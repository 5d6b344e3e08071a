#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "gguf/reader.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tests/support/cache.h"
#include "tests/support/temp_folder.h"

namespace retro::gguf {
namespace {

std::filesystem::path temporary(const std::string& name) {
  static const support::TempFolder folder;
  return folder / name;
}

std::string bytes_of(const Writer& writer) {
  std::string bytes;
  writer.write([&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Writer, TheBytesAreThoseOfTheFormat) {
  Writer writer;
  writer.add_u32("k", 7);
  const std::vector<float> numbers = {1.0F};
  writer.add_tensor("w", {1}, DType::F32, numbers);
  using namespace std::string_literals;
  const std::string expected =
      "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"s       // version 3, one tensor, one key
      "\1\0\0\0\0\0\0\0k\4\0\0\0\7\0\0\0"s                  // "k", u32, 7
      "\1\0\0\0\0\0\0\0w\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"s  // "w", one dimension of 1, F32
      "\0\0\0\0\0\0\0\0"s +                                 // at offset 0
      std::string(22, '\0') +                               // to byte 96
      "\0\0\x80\x3f"s +
      std::string(28, '\0');  // 1.0 and its padding
  EXPECT_EQ(bytes_of(writer), expected);
}

/// One entry of every type, at the ends of its range.
void add_every_type(Writer& writer) {
  writer.add_u8("u8", UINT8_MAX);
  writer.add_i8("i8", INT8_MIN);
  writer.add_u16("u16", UINT16_MAX);
  writer.add_i16("i16", INT16_MIN);
  writer.add_u32("u32", UINT32_MAX);
  writer.add_i32("i32", INT32_MIN);
  writer.add_u64("u64", UINT64_MAX);
  writer.add_i64("i64", INT64_MIN);
  writer.add_f32("f32", std::numeric_limits<float>::denorm_min());
  writer.add_f64("f64", -0.1);
  writer.add_bool("false", false);
  writer.add_string("string", std::string_view("a\0b", 3));
  writer.add_strings("empty", std::span<const std::string>());
  const double doubles[] = {0.25, -1e300};
  writer.add_numbers("f64s", ValueType::f64, std::as_bytes(std::span(doubles)));
}

TEST(Writer, EveryTypeOfValueComesBack) {
  Writer writer;
  add_every_type(writer);
  const std::string bytes = bytes_of(writer);
  const Part part = parse(as_bytes(bytes), "values.gguf");
  const auto value = [&](size_t i) -> const Value& { return part.entries.at(i).value; };
  EXPECT_EQ(value(0).type, ValueType::u8);
  EXPECT_EQ(value(0).as_u64(), 255U);
  EXPECT_EQ(value(1).as_i64(), -128);
  EXPECT_EQ(value(1).as_u64(), std::nullopt);
  EXPECT_EQ(value(2).as_u64(), 65535U);
  EXPECT_EQ(value(3).as_i64(), -32768);
  EXPECT_EQ(value(4).as_u64(), UINT32_MAX);
  EXPECT_EQ(value(5).as_i64(), INT32_MIN);
  EXPECT_EQ(value(6).as_u64(), UINT64_MAX);
  EXPECT_EQ(value(6).as_i64(), std::nullopt);
  EXPECT_EQ(value(7).as_i64(), INT64_MIN);
  EXPECT_EQ(static_cast<float>(std::get<double>(value(8).data)), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(std::get<double>(value(9).data), -0.1);
  EXPECT_FALSE(std::get<bool>(value(10).data));
  EXPECT_EQ(std::get<std::string_view>(value(11).data), std::string_view("a\0b", 3));
  EXPECT_TRUE(std::get<StringArray>(value(12).data).empty());
  EXPECT_EQ(std::get<double>(element(std::get<NumberArray>(value(13).data), 1)), -1e300);
}

TEST(Writer, TensorsComeBackInEachStoredType) {
  std::vector<float> numbers(40000);  // more than one piece of the narrowing
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
  Writer writer;
  writer.add_tensor("f32", {200, 200}, DType::F32, numbers);
  writer.add_tensor("f16", {400, 50, 2}, DType::F16, numbers);
  writer.add_tensor("bf16", {10, 20, 20, 10}, DType::BF16, numbers);
  writer.write(temporary("tensors.gguf"));
  const Reader model(temporary("tensors.gguf"));
  EXPECT_EQ(model.tensor("f16").dims, (std::array<int64_t, 4>{400, 50, 2, 1}));
  EXPECT_EQ(model.tensor("bf16").dims, (std::array<int64_t, 4>{10, 20, 20, 10}));
  std::vector<float> read(numbers.size());
  const auto n = static_cast<int64_t>(numbers.size());
  tensor::dequantize_row(DType::F32, model.tensor("f32").data, read.data(), n);
  EXPECT_EQ(read, numbers);
  tensor::dequantize_row(DType::F16, model.tensor("f16").data, read.data(), n);
  for (size_t i = 0; i < read.size(); ++i)
    ASSERT_EQ(read[i], tensor::f16_to_f32(tensor::f32_to_f16(numbers[i])));
  tensor::dequantize_row(DType::BF16, model.tensor("bf16").data, read.data(), n);
  for (size_t i = 0; i < read.size(); ++i)
    ASSERT_EQ(read[i], tensor::bf16_to_f32(tensor::f32_to_bf16(numbers[i])));
}

TEST(Writer, EveryTensorStartsAtAMultipleOfTheAlignment) {
  const std::vector<float> numbers(9, 2.0F);
  for (const uint32_t alignment : {8U, 32U, 256U}) {
    Writer writer(alignment);
    writer.add_tensor("a", {1}, DType::F32, std::span(numbers).first(1));
    writer.add_tensor("b", {9}, DType::F32, numbers);
    writer.add_tensor("c", {3, 3}, DType::F16, numbers);
    const std::string bytes = bytes_of(writer);
    const Part part = parse(as_bytes(bytes), "aligned.gguf");
    EXPECT_EQ(part.alignment, alignment);
    EXPECT_EQ(bytes.size() % alignment, 0U);
    for (const Tensor& tensor : part.tensors) {
      EXPECT_EQ((tensor.data - as_bytes(bytes).data()) % alignment, 0) << tensor.name;
    }
  }
}

// The number is what tools/references/fingerprint.py prints for the file, as the gguf package reads it.
TEST(Writer, AnIndependentReaderSeesTheSameContent) {
  const std::vector<float> numbers = {1, -2, 3.5F, 0.1F, 1e-8F, 65504};
  Writer writer(64);
  add_every_type(writer);
  writer.add_strings("strings", std::vector<std::string>{"one", "", "\xe2\x96\x81t"});
  writer.add_tensor("f32", {6}, DType::F32, numbers);
  writer.add_tensor("f16", {3, 2}, DType::F16, numbers);
  writer.add_tensor("bf16", {1, 2, 3}, DType::BF16, numbers);
  writer.write(temporary("package.gguf"));
  EXPECT_EQ(Reader(temporary("package.gguf")).fingerprint(), "f168a568efdc29349e6d97164f31cca2");
}

TEST(Writer, ARealModelCopiedEntryByEntryIsTheSameModel) {
  const Reader original(test::cached("smollm2-135m-q4_1.gguf"));
  Writer writer;
  for (const Entry& entry : original.entries()) writer.add_entry(entry);
  for (const Tensor& tensor : original.tensors()) writer.add_tensor(tensor);
  writer.write(temporary("copy.gguf"));
  const Reader copy(temporary("copy.gguf"));
  EXPECT_EQ(copy.fingerprint(), original.fingerprint());
  const auto a = original.files()[0].bytes();
  const auto b = copy.files()[0].bytes();
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0);
}

TEST(Writer, NamesMustBeNewAndFit) {
  const std::vector<float> one = {1};
  Writer writer;
  writer.add_u32("k", 1);
  writer.add_tensor("w", {1}, DType::F32, one);
  EXPECT_THROW(writer.add_bool("k", true), Error);
  EXPECT_THROW(writer.add_bool("", true), Error);
  EXPECT_THROW(writer.add_tensor("w", {1}, DType::F32, one), Error);
  EXPECT_THROW(writer.add_tensor("", {1}, DType::F32, one), Error);
  EXPECT_THROW(writer.add_tensor(std::string(64, 'x'), {1}, DType::F32, one), Error);
  EXPECT_NO_THROW(writer.add_tensor(std::string(63, 'x'), {1}, DType::F32, one));
  EXPECT_NO_THROW(parse(as_bytes(bytes_of(writer)), "x.gguf"));
  EXPECT_DEATH(writer.add_tensor("short", {2}, DType::F32, one), "");
}

TEST(Writer, AFailedWriteLeavesTheOldFile) {
  const auto path = temporary("kept.gguf");
  write_file(path, "old");
  const std::vector<float> numbers(1 << 20, 1.0F);
  Writer writer;
  writer.add_tensor("w", {1 << 20}, DType::F32, numbers);
  int writes = 0;
  for (int failing = 0;; ++failing) {
    writes = 0;
    g_write_fault = [&](size_t) {
      if (writes++ == failing) fail(ErrorKind::io, "disk full");
    };
    bool failed = false;
    try {
      writer.write(path);
    } catch (const Error&) {
      failed = true;
    }
    g_write_fault = nullptr;
    if (!failed) break;
    EXPECT_EQ(read_file(path), "old");
    ASSERT_LT(failing, 100);
  }
  EXPECT_GT(writes, 1);
  EXPECT_EQ(Reader(path).tensor("w").elements(), 1 << 20);
}

}  // namespace
}  // namespace retro::gguf
