// The encoders against llama.cpp's own quantizer (tools/references/quantize.py), byte for byte.
#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tensor/dequantize.h"
#include "tensor/dtype.h"

namespace retro::tensor {
namespace {

constexpr int kRows = 24;
constexpr int kColumns = 512;

/// Makes value i of a row from a number drawn for it (and the row's first).
using Shape = std::function<float(int i, float x, float first)>;

struct Kind {
  const char* name;
  Shape shape;
};

/// As the script has them, in its order.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"uniform", [](int, float x, float) { return x; }},
      {"cubed", [](int, float x, float) { return x * x * x; }},
      {"outliers", [](int i, float x, float) { return i % 37 == 5 ? x * 64 : x; }},
      {"zeros", [](int, float x, float) { return x * 0; }},
      {"constant", [](int, float, float first) { return first; }},
      {"subnormal", [](int, float x, float) { return x * 0x1p-130F; }},
      {"smallest", [](int, float x, float) { return std::trunc(x * 4) * 0x1p-149F; }},
      {"tiny", [](int, float x, float) { return x * 0x1p-20F; }},
      {"near_zero_groups", [](int, float x, float) { return x * 0x1p-50F; }},
      {"large", [](int, float x, float) { return x * 0x1p15F; }},
      {"positive", [](int, float x, float) { return std::abs(x) + 0.5F; }},
      {"negative", [](int, float x, float) { return -(std::abs(x) + 0.5F); }},
      {"sparse", [](int i, float x, float) { return i % 32 == 7 ? x : 0 * x; }},
      {"halves", [](int, float x, float) { return std::trunc(x * 16) * 0.5F; }},
  };
  return all;
}

/// Rows of a kind, drawn by a linear congruential generator that goes on from kind to kind.
std::vector<float> rows_of(const Kind& kind, uint32_t& state) {
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
  }
  for (int r = 0; r < kRows; ++r) {
    float* row = &values[static_cast<size_t>(r) * kColumns];
    const float first = row[0];
    for (int i = 0; i < kColumns; ++i) row[i] = kind.shape(i, row[i], first);
  }
  return values;
}

std::vector<std::byte> encode(DType dtype, const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(dtype, n)));
  quantize_row(dtype, values.data(), bytes.data(), n);
  return bytes;
}

std::string digest(const std::vector<std::byte>& bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum += static_cast<uint64_t>(bytes[i]) * (2 * i + 1);
  return std::to_string(sum);
}

std::string to_hex(const std::vector<std::byte>& bytes, size_t count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (size_t i = 0; i < count; ++i) {
    hex += kDigits[static_cast<size_t>(bytes[i]) / 16];
    hex += kDigits[static_cast<size_t>(bytes[i]) % 16];
  }
  return hex;
}

nlohmann::json references() {
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/quantize.json");
  return nlohmann::json::parse(file);
}

TEST(Quantize, EqualsLlamaCppByteForByte) {
  const nlohmann::json expected = references();
  ASSERT_EQ(expected.at("digests").size(), kinds().size());
  uint32_t state = 1;
  for (const Kind& kind : kinds()) {
    const std::vector<float> values = rows_of(kind, state);
    const nlohmann::json& digests = expected.at("digests").at(kind.name);
    EXPECT_EQ(digests.size(), 10U);
    for (const auto& [name, want] : digests.items()) {
      const std::vector<std::byte> bytes = encode(parse_dtype(name).value(), values);
      EXPECT_EQ(digest(bytes), want.get<std::string>()) << name << " of " << kind.name << " rows";
      if (std::string_view(kind.name) != "uniform" || !expected.at("rows").contains(name)) continue;
      EXPECT_EQ(to_hex(bytes, bytes.size() / kRows), expected.at("rows").at(name).get<std::string>()) << name;
    }
  }
}

/// Rounding numbers in -1 … 1 to 2^bits levels leaves an error that is even over a step: of 1 / √12 steps.
TEST(Quantize, ErrorsAreThoseOfTheNumberOfLevels) {
  uint32_t state = 7;
  const std::vector<float> values = rows_of(kinds().front(), state);
  for (const auto& [dtype, bits] :
       {std::pair{DType::Q4_0, 4}, std::pair{DType::Q4_1, 4}, std::pair{DType::Q4_K, 4},
        std::pair{DType::Q5_0, 5}, std::pair{DType::Q5_1, 5}, std::pair{DType::Q5_K, 5},
        std::pair{DType::Q6_K, 6}, std::pair{DType::Q8_0, 8}}) {
    const std::vector<std::byte> bytes = encode(dtype, values);
    std::vector<float> decoded(values.size());
    dequantize_row(dtype, bytes.data(), decoded.data(), static_cast<int64_t>(values.size()));
    double squares = 0;
    for (size_t i = 0; i < values.size(); ++i) squares += std::pow(decoded[i] - values[i], 2);
    const double steps = std::sqrt(squares / static_cast<double>(values.size())) / std::exp2(1 - bits);
    EXPECT_GT(steps * std::sqrt(12), 0.8) << dtype_name(dtype);
    EXPECT_LT(steps * std::sqrt(12), 1.2) << dtype_name(dtype);
  }
}

TEST(Quantize, PlainTypesRoundEachNumber) {
  const std::vector<float> values = {1, -0.0F, 1 + 0x1p-11F, 1 + 0x3p-11F, 1 + 0x1p-8F, 1 + 0x3p-8F};
  const auto decoded = [&](DType dtype) {
    std::vector<float> result(values.size());
    const std::vector<std::byte> bytes = encode(dtype, values);
    dequantize_row(dtype, bytes.data(), result.data(), static_cast<int64_t>(values.size()));
    return result;
  };
  EXPECT_EQ(decoded(DType::F32), values);
  EXPECT_EQ(decoded(DType::F16),
            (std::vector<float>{1, 0, 1, 1 + 0x1p-9F, 1 + 0x1p-8F, 1 + 0x3p-8F}));  // ties to even
  EXPECT_EQ(decoded(DType::BF16), (std::vector<float>{1, 0, 1, 1, 1, 1 + 0x1p-6F}));
}

TEST(Quantize, TypesWithoutAnEncoderAreRefusedByName) {
  const std::array<float, 256> values = {};
  std::array<std::byte, 512> row = {};
  for (const DType dtype : {DType::Q2_K, DType::IQ4_NL, DType::Q8_K, DType::I32}) {
    EXPECT_FALSE(encodable(dtype));
    try {
      quantize_row(dtype, values.data(), row.data(), 256);
      FAIL() << dtype_name(dtype);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind(dtype_name(dtype) + " ", 0), 0U) << message;
      EXPECT_NE(message.find("Q4_K, Q5_K, Q6_K"), std::string::npos) << message;
    }
  }
}

TEST(Quantize, ValuesThatAreNotFiniteAreRefusedByPosition) {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::array<float, 256> values = {};
    std::array<std::byte, 1024> row = {};
    values[77] = odd;
    for (const DType dtype : {DType::F32, DType::F16, DType::Q4_0, DType::Q6_K}) {
      try {
        quantize_row(dtype, values.data(), row.data(), 256);
        FAIL() << dtype_name(dtype);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("value 77 "), std::string::npos) << error.what();
      }
    }
  }
}

// f16, in which values and scales of blocks are written, ends at 65504.
TEST(Quantize, ValuesThatBecomeInfiniteAreRefused) {
  std::array<float, 256> values = {};
  std::array<std::byte, 1024> row = {};
  values[99] = 2e9F;
  for (const DType dtype : {DType::F16, DType::Q4_0, DType::Q4_1, DType::Q8_0, DType::Q4_K}) {
    try {
      quantize_row(dtype, values.data(), row.data(), 256);
      FAIL() << dtype_name(dtype);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("too large for "), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(quantize_row(DType::BF16, values.data(), row.data(), 256));
}

TEST(Quantize, OnlyWholeBlocksAreWritten) {
  const std::array<float, 64> values = {};
  std::array<std::byte, 512> row = {};
  EXPECT_DEATH(quantize_row(DType::Q4_0, values.data(), row.data(), 33), "");
  EXPECT_DEATH(quantize_row(DType::Q4_K, values.data(), row.data(), 64), "");
  EXPECT_NO_THROW(quantize_row(DType::Q4_0, values.data(), row.data(), 0));
}

}  // namespace
}  // namespace retro::tensor
