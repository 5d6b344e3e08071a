#include "tensor/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace retro::tensor {
namespace {

constexpr DTypeInfo kTypes[] = {
    {DType::F32, "F32", 1, 4, true},
    {DType::F16, "F16", 1, 2, true},
    {DType::Q4_0, "Q4_0", 32, 2 + 16, true},
    {DType::Q4_1, "Q4_1", 32, 4 + 16, true},
    {DType::Q5_0, "Q5_0", 32, 2 + 4 + 16, true},
    {DType::Q5_1, "Q5_1", 32, 4 + 4 + 16, true},
    {DType::Q8_0, "Q8_0", 32, 2 + 32, true},
    {DType::Q8_1, "Q8_1", 32, 4 + 32, false},
    {DType::Q2_K, "Q2_K", 256, 16 + 64 + 4, true},
    {DType::Q3_K, "Q3_K", 256, 32 + 64 + 12 + 2, true},
    {DType::Q4_K, "Q4_K", 256, 4 + 12 + 128, true},
    {DType::Q5_K, "Q5_K", 256, 4 + 12 + 32 + 128, true},
    {DType::Q6_K, "Q6_K", 256, 128 + 64 + 16 + 2, true},
    {DType::Q8_K, "Q8_K", 256, 4 + 256 + 32, false},
    {DType::IQ2_XXS, "IQ2_XXS", 256, 2 + 64, true},
    {DType::IQ2_XS, "IQ2_XS", 256, 2 + 64 + 8, true},
    {DType::IQ3_XXS, "IQ3_XXS", 256, 2 + 64 + 32, true},
    {DType::IQ1_S, "IQ1_S", 256, 2 + 32 + 16, true},
    {DType::IQ4_NL, "IQ4_NL", 32, 2 + 16, true},
    {DType::IQ3_S, "IQ3_S", 256, 2 + 64 + 32 + 8 + 4, true},
    {DType::IQ2_S, "IQ2_S", 256, 2 + 64 + 16, true},
    {DType::IQ4_XS, "IQ4_XS", 256, 4 + 128 + 4, true},
    {DType::I8, "I8", 1, 1, false},
    {DType::I16, "I16", 1, 2, false},
    {DType::I32, "I32", 1, 4, false},
    {DType::I64, "I64", 1, 8, false},
    {DType::F64, "F64", 1, 8, false},
    {DType::IQ1_M, "IQ1_M", 256, 32 + 16 + 8, true},
    {DType::BF16, "BF16", 1, 2, true},
    {DType::TQ1_0, "TQ1_0", 256, 2 + 4 * 13, true},
    {DType::TQ2_0, "TQ2_0", 256, 2 + 64, true},
    {DType::MXFP4, "MXFP4", 32, 1 + 16, true},
    {DType::NVFP4, "NVFP4", 64, 4 + 32, true},
    {DType::Q1_0, "Q1_0", 128, 2 + 16, true},
    {DType::Q2_0, "Q2_0", 64, 2 + 16, true},
};

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const DTypeInfo* find_dtype(uint32_t id) {
  const auto* found = std::ranges::find_if(
      kTypes, [id](const DTypeInfo& info) { return static_cast<uint32_t>(info.dtype) == id; });
  return found == std::end(kTypes) ? nullptr : found;
}

const DTypeInfo& dtype_info(DType dtype) {
  const DTypeInfo* info = find_dtype(static_cast<uint32_t>(dtype));
  RETRO_CHECK(info != nullptr);
  return *info;
}

const DTypeInfo& newest_dtype() {
  return *std::ranges::max_element(kTypes, {}, &DTypeInfo::dtype);
}

std::string dtype_name(DType dtype) {
  const DTypeInfo* info = find_dtype(static_cast<uint32_t>(dtype));
  return info != nullptr ? std::string(info->name) : fmt::format("type {}", static_cast<uint32_t>(dtype));
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& info : kTypes) {
    if (same_word(info.name, name)) return info.dtype;
  }
  return std::nullopt;
}

std::string decodable_names() {
  std::string names;
  for (const DTypeInfo& info : kTypes) {
    if (info.decodable) names.append(names.empty() ? "" : ", ").append(info.name);
  }
  return names;
}

int64_t row_bytes(DType dtype, int64_t columns) {
  const DTypeInfo& info = dtype_info(dtype);
  RETRO_CHECK(columns >= 0 && columns % info.block_elements == 0);
  return columns / info.block_elements * info.block_bytes;
}

}  // namespace retro::tensor
