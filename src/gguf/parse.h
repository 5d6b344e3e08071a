// The bytes of one GGUF file, checked and indexed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gguf/value.h"

namespace retro::gguf {

inline constexpr uint32_t kDefaultAlignment = 32;
/// ggml keeps a tensor's name in 64 bytes with a closing zero.
inline constexpr size_t kMaxTensorName = 63;
inline constexpr size_t kMaxKey = 65535;

/// The contents of one file; everything in it points into the bytes it was parsed from.
struct Part {
  uint32_t version = 0;
  uint32_t alignment = kDefaultAlignment;
  std::vector<Entry> entries;   // in the order of the file
  std::vector<Tensor> tensors;  // in the order of the table
};

/// Reads a little-endian GGUF of version 2 or 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
/// Every count, length, offset, size and type is checked before it is used, so that time and memory are
/// bounded by the size of the file. Throws Error(model) naming `file`, the key or tensor, and the field.
Part parse(std::span<const std::byte> bytes, const std::string& file);

/// Whether it can be an alignment: a power of two from 8 up (the format asks for a multiple of 8).
constexpr bool is_alignment(uint64_t value) {
  return value >= 8 && (value & (value - 1)) == 0;
}

}  // namespace retro::gguf
