#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace retro::tensor {
namespace {

TEST(DType, IdsAndSizesAreThoseOfTheFormat) {
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/dequantize.json");
  const auto sizes = nlohmann::json::parse(file).at("sizes");
  EXPECT_GT(sizes.size(), 30U);
  for (const auto& [name, row] : sizes.items()) {
    const DTypeInfo* info = find_dtype(row.at(0).get<uint32_t>());
    ASSERT_NE(info, nullptr) << name;
    EXPECT_EQ(info->name, name);
    EXPECT_EQ(info->block_elements, row.at(1)) << name;
    // The package counts Q8_1's two halves as floats; blocks of that type never lie in a file.
    if (name == "Q8_1") continue;
    EXPECT_EQ(info->block_bytes, row.at(2)) << name;
  }
}

TEST(DType, UnknownIdsHaveNoRowButAName) {
  for (const uint32_t id : {4U, 5U, 31U, 36U, 43U, 255U, UINT32_MAX}) {
    EXPECT_EQ(find_dtype(id), nullptr) << id;
    EXPECT_EQ(dtype_name(static_cast<DType>(id)), "type " + std::to_string(id));
  }
}

TEST(DType, NamesAreReadInEitherCase) {
  EXPECT_EQ(parse_dtype("q4_k"), DType::Q4_K);
  EXPECT_EQ(parse_dtype("Q4_K"), DType::Q4_K);
  EXPECT_EQ(parse_dtype("bf16"), DType::BF16);
  EXPECT_EQ(parse_dtype("f8"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, RowBytesCountsWholeBlocks) {
  EXPECT_EQ(row_bytes(DType::F32, 3), 12);
  EXPECT_EQ(row_bytes(DType::Q4_1, 576), 360);
  EXPECT_EQ(row_bytes(DType::Q6_K, 2048), 1680);
  EXPECT_EQ(row_bytes(DType::Q4_0, 0), 0);
  EXPECT_DEATH(row_bytes(DType::Q4_0, 33), "");
}

}  // namespace
}  // namespace retro::tensor
