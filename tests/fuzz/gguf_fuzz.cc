// Any bytes are a GGUF file or an Error(model); one that is read, then written, is read as the same.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "gguf/parse.h"
#include "gguf/writer.h"
#include "tensor/dequantize.h"

namespace {

using namespace retro;
using gguf::Part;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads everything that the part hands out.
void touch(const Part& part) {
  for (const gguf::Entry& entry : part.entries) require(!to_text(entry.value).empty());
  std::vector<float> row;
  for (const gguf::Tensor& tensor : part.tensors) {
    require(!shape_text(tensor).empty());
    if (!tensor::dtype_info(tensor.dtype).decodable) continue;
    row.resize(static_cast<size_t>(tensor.cols()));
    const auto stride = static_cast<uint64_t>(tensor::row_bytes(tensor.dtype, tensor.cols()));
    require(stride * static_cast<uint64_t>(tensor.rows()) == tensor.bytes);
    tensor::dequantize_row(tensor.dtype, tensor.data + tensor.bytes - stride, row.data(), tensor.cols());
  }
}

std::vector<std::byte> rewrite(const Part& part) {
  gguf::Writer writer(part.alignment);
  for (const gguf::Entry& entry : part.entries) {
    if (entry.key != "general.alignment") writer.add_entry(entry);
  }
  for (const gguf::Tensor& tensor : part.tensors) writer.add_tensor(tensor);
  std::vector<std::byte> bytes;
  writer.write(
      [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return bytes;
}

void compare(const Part& a, const Part& b) {
  require(a.tensors.size() == b.tensors.size() && a.alignment == b.alignment);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    require(a.tensors[i].name == b.tensors[i].name && a.tensors[i].dims == b.tensors[i].dims);
    require(a.tensors[i].bytes == b.tensors[i].bytes);
    require(std::memcmp(a.tensors[i].data, b.tensors[i].data, a.tensors[i].bytes) == 0);
  }
  for (const gguf::Entry& entry : a.entries) {
    if (entry.key == "general.alignment") continue;
    bool found = false;
    for (const gguf::Entry& other : b.entries) {
      if (other.key != entry.key) continue;
      found = other.raw.size() == entry.raw.size() &&
              std::memcmp(other.raw.data(), entry.raw.data(), entry.raw.size()) == 0;
    }
    require(found);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exact size, so that a read past its end is seen; aligned as a mapping is.
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  Part part;
  try {
    part = gguf::parse(bytes, "fuzz.gguf");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::model);
    return 0;
  }
  touch(part);
  if (part.alignment > (1U << 16)) return 0;  // the written file would be all padding
  const std::vector<std::byte> again = rewrite(part);
  compare(part, gguf::parse(again, "again.gguf"));
  return 0;
}
