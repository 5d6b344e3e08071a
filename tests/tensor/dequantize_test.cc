// The decoders against the `gguf` Python package's own (tools/references/dequantize.py), bit for bit.
#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tests/support/block_scale.h"

namespace retro::tensor {
namespace {

nlohmann::json references() {
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/dequantize.json");
  return nlohmann::json::parse(file);
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(Dequantize, EqualsTheReferencePackageBitForBit) {
  const auto cases = references().at("cases");
  EXPECT_EQ(cases.size(), 28U);
  for (const auto& one : cases) {
    const auto dtype = parse_dtype(one.at("type").get<std::string>());
    ASSERT_TRUE(dtype.has_value()) << one.at("type");
    ASSERT_TRUE(dtype_info(*dtype).decodable);
    const auto blocks = from_hex(one.at("blocks"));
    const auto expected = from_hex(one.at("values"));
    std::vector<float> values(expected.size() / sizeof(float));
    const auto n = static_cast<int64_t>(values.size());
    ASSERT_EQ(row_bytes(*dtype, n), static_cast<int64_t>(blocks.size()));
    dequantize_row(*dtype, blocks.data(), values.data(), n);
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t want = 0;
      std::memcpy(&want, expected.data() + 4 * i, 4);
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), want) << one.at("type") << " value " << i;
    }
  }
}

/// 1024 blocks of a linear congruential generator's bytes, with 1 for each half-precision number, as the
/// script draws them: enough to meet every entry of every grid.
std::vector<std::byte> swept_blocks(DType dtype) {
  constexpr uint16_t kHalfOne = 0x3c00;
  const auto size = static_cast<size_t>(dtype_info(dtype).block_bytes);
  std::vector<std::byte> blocks(1024 * size);
  uint32_t state = 1;
  for (std::byte& byte : blocks) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  for (size_t at = 0; at < blocks.size(); at += size) {
    for (const size_t offset : test::half_offsets(dtype)) std::memcpy(&blocks[at + offset], &kHalfOne, 2);
    if (dtype == DType::IQ1_M) test::set_scale(dtype, &blocks[at], 1);
  }
  return blocks;
}

TEST(Dequantize, EveryEntryOfTheTablesIsThatOfTheReferencePackage) {
  const auto sweeps = references().at("sweeps");
  EXPECT_EQ(sweeps.size(), 25U);
  for (const auto& one : sweeps) {
    const DType dtype = parse_dtype(one.at("type").get<std::string>()).value();
    const auto blocks = swept_blocks(dtype);
    std::vector<float> values(static_cast<size_t>(1024 * dtype_info(dtype).block_elements));
    dequantize_row(dtype, blocks.data(), values.data(), static_cast<int64_t>(values.size()));
    uint64_t digest = 0;
    for (size_t i = 0; i < values.size(); ++i) digest += std::bit_cast<uint32_t>(values[i]) * (2 * i + 1);
    EXPECT_EQ(std::to_string(digest), one.at("digest")) << one.at("type");
  }
}

TEST(Dequantize, EveryDecodableTypeHasAReference) {
  const auto cases = references().at("cases");
  for (uint32_t id = 0; id < 256; ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr || !info->decodable) continue;
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const auto& one) {
      return one.at("type") == info->name;
    })) << info->name;
  }
}

TEST(Dequantize, TypesWithoutADecoderAreRefusedByName) {
  const std::byte row[512] = {};
  float out[256];
  for (const DType dtype : {DType::Q8_1, DType::Q8_K, DType::I32, DType::F64}) {
    try {
      dequantize_row(dtype, row, out, 256);
      FAIL() << dtype_name(dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model);
      EXPECT_EQ(std::string(error.what()).rfind(dtype_name(dtype) + " ", 0), 0U) << error.what();
    }
  }
}

TEST(Dequantize, RowsNeedNoAlignment) {
  const auto blocks = from_hex(references().at("cases").at(8).at("blocks"));
  std::vector<std::byte> moved(blocks.size() + 1);
  std::copy(blocks.begin(), blocks.end(), moved.begin() + 1);
  float aligned[256];
  float shifted[256];
  dequantize_row(DType::Q4_K, blocks.data(), aligned, 256);
  dequantize_row(DType::Q4_K, moved.data() + 1, shifted, 256);
  EXPECT_EQ(std::memcmp(aligned, shifted, sizeof(aligned)), 0);
}

}  // namespace
}  // namespace retro::tensor
