// The element types of GGUF tensors, their sizes, and which of them can be decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retro::tensor {

/// Numbered as in the GGUF file format (ggml's type ids); the gaps are types that no longer exist.
enum class DType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
  Q2_0 = 42,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as the GGUF documents spell it: "Q4_K"
  int64_t block_elements;
  int64_t block_bytes;
  bool decodable;  // dequantize_row knows it
};

/// The row of the table, or nullptr for an id that no known type has.
const DTypeInfo* find_dtype(uint32_t id);

/// The row of the table for a known type.
const DTypeInfo& dtype_info(DType dtype);

/// The row with the largest id.
const DTypeInfo& newest_dtype();

/// "Q4_K"; "type 255" for an id that no known type has.
std::string dtype_name(DType dtype);

/// The type of that name in either case ("q4_k", "BF16"); nothing for another word.
std::optional<DType> parse_dtype(std::string_view name);

/// "F32, F16, Q4_0, …": the types that dequantize_row knows, for error messages.
std::string decodable_names();

/// Bytes of a row of `columns` elements; `columns` is a multiple of the type's block.
int64_t row_bytes(DType dtype, int64_t columns);

}  // namespace retro::tensor
