#include "gguf/writer.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/files.h"
#include "tensor/half.h"

namespace retro::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr size_t kConvertChunk = 16384;

template <typename T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_string(std::string& to, std::string_view text) {
  append(to, uint64_t{text.size()});
  to.append(text);
}

uint64_t padded(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

uint64_t bytes_of(const std::vector<int64_t>& dims, DType dtype) {
  RETRO_CHECK(!dims.empty() && dims.size() <= 4);
  uint64_t rows = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    RETRO_CHECK(dims[i] > 0);
    if (i > 0) rows *= static_cast<uint64_t>(dims[i]);
  }
  return rows * static_cast<uint64_t>(tensor::row_bytes(dtype, dims[0]));
}

/// Rounds the numbers to 16 bits by pieces.
Producer narrow(std::span<const float> values, uint16_t (*convert)(float)) {
  return [values, convert](const Sink& sink) {
    std::vector<uint16_t> piece;
    for (size_t i = 0; i < values.size(); i += kConvertChunk) {
      const auto part = values.subspan(i, std::min(kConvertChunk, values.size() - i));
      piece.resize(part.size());
      std::ranges::transform(part, piece.begin(), convert);
      sink(std::as_bytes(std::span(piece)));
    }
  };
}

}  // namespace

Writer::Writer(uint32_t alignment) : alignment_(alignment) {
  RETRO_CHECK(is_alignment(alignment));
  if (alignment != kDefaultAlignment) add_u32("general.alignment", alignment);
}

std::string& Writer::begin_entry(std::string_view key, ValueType type) {
  if (key.empty() || key.size() > kMaxKey) {
    fail(ErrorKind::model, "key {}: must have 1 to {} bytes", quoted(key), kMaxKey);
  }
  if (!keys_.emplace(key).second) fail(ErrorKind::model, "key {}: is written twice", quoted(key));
  ++entry_count_;
  append_string(entries_, key);
  append(entries_, static_cast<uint32_t>(type));
  return entries_;
}

template <typename T>
void Writer::add_number(std::string_view key, ValueType type, T value) {
  append(begin_entry(key, type), value);
}

template <typename T>
void Writer::add_array(std::string_view key, ValueType type, std::span<const T> values) {
  add_numbers(key, type, std::as_bytes(values));
}

template <typename T>
void Writer::add_string_array(std::string_view key, std::span<const T> values) {
  std::string& to = begin_entry(key, ValueType::array);
  append(to, static_cast<uint32_t>(ValueType::string));
  append(to, uint64_t{values.size()});
  for (const auto& value : values) append_string(to, value);
}

void Writer::add_u8(std::string_view key, uint8_t value) {
  add_number(key, ValueType::u8, value);
}
void Writer::add_i8(std::string_view key, int8_t value) {
  add_number(key, ValueType::i8, value);
}
void Writer::add_u16(std::string_view key, uint16_t value) {
  add_number(key, ValueType::u16, value);
}
void Writer::add_i16(std::string_view key, int16_t value) {
  add_number(key, ValueType::i16, value);
}
void Writer::add_u32(std::string_view key, uint32_t value) {
  add_number(key, ValueType::u32, value);
}
void Writer::add_i32(std::string_view key, int32_t value) {
  add_number(key, ValueType::i32, value);
}
void Writer::add_u64(std::string_view key, uint64_t value) {
  add_number(key, ValueType::u64, value);
}
void Writer::add_i64(std::string_view key, int64_t value) {
  add_number(key, ValueType::i64, value);
}
void Writer::add_f32(std::string_view key, float value) {
  add_number(key, ValueType::f32, value);
}
void Writer::add_f64(std::string_view key, double value) {
  add_number(key, ValueType::f64, value);
}
void Writer::add_bool(std::string_view key, bool value) {
  add_number(key, ValueType::boolean, static_cast<uint8_t>(value ? 1 : 0));
}

void Writer::add_string(std::string_view key, std::string_view value) {
  append_string(begin_entry(key, ValueType::string), value);
}

void Writer::add_strings(std::string_view key, std::span<const std::string> values) {
  add_string_array(key, values);
}

void Writer::add_strings(std::string_view key, std::span<const std::string_view> values) {
  add_string_array(key, values);
}

void Writer::add_u32s(std::string_view key, std::span<const uint32_t> values) {
  add_array(key, ValueType::u32, values);
}

void Writer::add_i32s(std::string_view key, std::span<const int32_t> values) {
  add_array(key, ValueType::i32, values);
}

void Writer::add_f32s(std::string_view key, std::span<const float> values) {
  add_array(key, ValueType::f32, values);
}

void Writer::add_numbers(std::string_view key, ValueType element, std::span<const std::byte> bytes) {
  const size_t size = type_bytes(element);
  RETRO_CHECK(size > 0 && bytes.size() % size == 0);
  std::string& to = begin_entry(key, ValueType::array);
  append(to, static_cast<uint32_t>(element));
  append(to, uint64_t{bytes.size() / size});
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Writer::add_entry(const Entry& entry) {
  std::string& to = begin_entry(entry.key, entry.value.type);
  const auto value = entry.raw.subspan(sizeof(uint32_t));  // its type is written
  to.append(reinterpret_cast<const char*>(value.data()), value.size());
}

void Writer::add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype,
                        Producer producer) {
  if (name.empty() || name.size() > kMaxTensorName) {
    fail(ErrorKind::model, "tensor {}: its name has {} bytes; llama.cpp allows 1 to {}", quoted(name),
         name.size(), kMaxTensorName);
  }
  if (!names_.emplace(name).second) fail(ErrorKind::model, "tensor {}: is written twice", quoted(name));
  const uint64_t bytes = bytes_of(dims, dtype);
  tensors_.push_back({std::string(name), dims, dtype, bytes, data_bytes_, std::move(producer)});
  data_bytes_ += padded(bytes, alignment_);
}

void Writer::add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype,
                        std::span<const std::byte> data) {
  RETRO_CHECK(data.size() == bytes_of(dims, dtype));
  add_tensor(name, dims, dtype, [data](const Sink& sink) { sink(data); });
}

void Writer::add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype,
                        std::span<const float> values) {
  RETRO_CHECK(values.size_bytes() == bytes_of(dims, DType::F32));
  switch (dtype) {
    case DType::F32:
      return add_tensor(name, dims, dtype, std::as_bytes(values));
    case DType::F16:
      return add_tensor(name, dims, dtype, narrow(values, tensor::f32_to_f16));
    case DType::BF16:
      return add_tensor(name, dims, dtype, narrow(values, tensor::f32_to_bf16));
    default:
      fail(ErrorKind::internal, "tensor {}: {} cannot be made from f32 numbers", quoted(name),
           dtype_name(dtype));
  }
}

void Writer::add_tensor(const Tensor& tensor) {
  int rank = 4;
  while (rank > 1 && tensor.dims[rank - 1] == 1) --rank;
  add_tensor(tensor.name, std::vector(tensor.dims.begin(), tensor.dims.begin() + rank), tensor.dtype,
             tensor.span());
}

std::string Writer::header() const {
  std::string text = "GGUF";
  append(text, uint32_t{3});
  append(text, uint64_t{tensors_.size()});
  append(text, entry_count_);
  text += entries_;
  for (const TableRow& row : tensors_) {
    append_string(text, row.name);
    append(text, static_cast<uint32_t>(row.dims.size()));
    for (const int64_t dim : row.dims) append(text, dim);
    append(text, static_cast<uint32_t>(row.dtype));
    append(text, row.offset);
  }
  text.resize(padded(text.size(), alignment_), '\0');
  return text;
}

void Writer::write(const Sink& sink) const {
  const std::string head = header();
  sink(std::as_bytes(std::span(head)));
  const std::string zeros(alignment_, '\0');
  for (const TableRow& row : tensors_) {
    uint64_t written = 0;
    row.producer([&](std::span<const std::byte> bytes) {
      written += bytes.size();
      RETRO_CHECK(written <= row.bytes);
      sink(bytes);
    });
    RETRO_CHECK(written == row.bytes);
    sink(std::as_bytes(std::span(zeros)).first(padded(written, alignment_) - written));
  }
}

void Writer::write(const std::filesystem::path& path) const {
  OutputFile file(path);
  write([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace retro::gguf
