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
  EXPECT_EQ(cases.size(), 11U);
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
  for (const DType dtype : {DType::Q2_K, DType::IQ4_NL, DType::I32, DType::F64, DType::MXFP4}) {
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
