#include "gguf/parse.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "gguf/cursor.h"

namespace retro::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

constexpr size_t kMinEntryBytes = 8 + 1 + 4 + 1;       // a key of one letter with a one-byte value
constexpr size_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // a name of one letter without dimensions
constexpr std::string_view kLfsPointer = "version https://git-lfs";

void check_magic(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) fail(ErrorKind::model, "{}: is empty, not a GGUF file", file);
  if (text.starts_with(kLfsPointer)) {
    fail(ErrorKind::model, "{}: is a git-lfs pointer, not the model itself; run `git lfs pull` in its folder",
         file);
  }
  if (!text.starts_with("GGUF")) {
    fail(ErrorKind::model, "{}: is not a GGUF file: it starts with {}, not 'GGUF'", file,
         quoted(text.substr(0, 4)));
  }
}

uint32_t read_version(Cursor& cursor) {
  const auto version = cursor.read<uint32_t>("the version");
  if (version != 0 && (version & 0xffffU) == 0) {
    cursor.refuse(
        "is a big-endian GGUF file; only little-endian ones can be read: convert it with "
        "gguf-convert-endian");
  }
  if (version != 2 && version != 3) {
    cursor.refuse("is a GGUF file of version {}; versions 2 and 3 can be read", version);
  }
  return version;
}

/// A count that the rest of the file can hold, each item having at least `item_bytes`.
size_t read_count(Cursor& cursor, const char* what, size_t item_bytes) {
  const auto count = cursor.read<uint64_t>(what);
  if (count > cursor.remaining() / item_bytes) {
    cursor.refuse("the header says {} is {}, more than the remaining {} bytes can hold; the file is damaged",
                  what, count, cursor.remaining());
  }
  return count;
}

Value read_array(Cursor& cursor) {
  const auto type = static_cast<ValueType>(cursor.read<uint32_t>("the array's element type"));
  if (type == ValueType::array)
    cursor.refuse("is an array of arrays; only arrays of numbers, bools or strings can be read");
  if (type != ValueType::string && type_bytes(type) == 0) {
    cursor.refuse("is an array of elements of unknown {}; known are 0 (u8) to 12 (f64)", type_name(type));
  }
  const auto count = cursor.read<uint64_t>("the array's length");
  // A string takes at least the eight bytes of its length.
  const size_t item_bytes = type == ValueType::string ? 8 : type_bytes(type);
  if (count > cursor.remaining() / item_bytes) {
    cursor.refuse(
        "its array has {} elements of type {}, more than the remaining {} bytes can hold; the file is "
        "incomplete or damaged",
        count, type_name(type), cursor.remaining());
  }
  if (type == ValueType::string) {
    StringArray strings;
    strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i) strings.push_back(cursor.read_string("a string of the array"));
    return {ValueType::array, std::move(strings)};
  }
  const NumberArray array{type, cursor.take(count * item_bytes, "the array")};
  if (type == ValueType::boolean &&
      std::ranges::any_of(array.bytes, [](std::byte b) { return b > std::byte{1}; })) {
    cursor.refuse("a bool of its array is neither 0 nor 1");
  }
  return {ValueType::array, array};
}

Value read_value(Cursor& cursor) {
  const auto type = static_cast<ValueType>(cursor.read<uint32_t>("the value's type"));
  const char* const field = "the value";
  switch (type) {
    case ValueType::u8:
      return {type, uint64_t{cursor.read<uint8_t>(field)}};
    case ValueType::u16:
      return {type, uint64_t{cursor.read<uint16_t>(field)}};
    case ValueType::u32:
      return {type, uint64_t{cursor.read<uint32_t>(field)}};
    case ValueType::u64:
      return {type, cursor.read<uint64_t>(field)};
    case ValueType::i8:
      return {type, int64_t{cursor.read<int8_t>(field)}};
    case ValueType::i16:
      return {type, int64_t{cursor.read<int16_t>(field)}};
    case ValueType::i32:
      return {type, int64_t{cursor.read<int32_t>(field)}};
    case ValueType::i64:
      return {type, cursor.read<int64_t>(field)};
    case ValueType::f32:
      return {type, double{cursor.read<float>(field)}};
    case ValueType::f64:
      return {type, cursor.read<double>(field)};
    case ValueType::boolean: {
      const auto byte = cursor.read<uint8_t>(field);
      if (byte > 1) cursor.refuse("its bool is {}, neither 0 nor 1", byte);
      return {type, byte == 1};
    }
    case ValueType::string:
      return {type, cursor.read_string(field)};
    case ValueType::array:
      return read_array(cursor);
  }
  cursor.refuse("its value has the unknown {}; known are 0 (u8) to 12 (f64)", type_name(type));
}

std::vector<Entry> read_entries(Cursor& cursor, size_t count) {
  std::vector<Entry> entries;
  entries.reserve(std::min<size_t>(count, 4096));  // the count is not trusted with memory
  for (size_t i = 0; i < count; ++i) {
    cursor.enter("metadata entry", i);
    const std::string_view key = cursor.read_string("the key");
    if (key.empty()) cursor.refuse("its key is empty");
    if (key.size() > kMaxKey)
      cursor.refuse("its key has {} bytes; at most {} are allowed", key.size(), kMaxKey);
    cursor.enter("key", i);
    cursor.name(key);
    const std::byte* start = cursor.here();
    Value value = read_value(cursor);
    entries.push_back({key, std::move(value), {start, cursor.here()}});
  }
  return entries;
}

uint32_t find_alignment(const std::vector<Entry>& entries, const std::string& file) {
  const auto entry = std::ranges::find(entries, "general.alignment", &Entry::key);
  if (entry == entries.end()) return kDefaultAlignment;
  const auto number = entry->value.as_u64();
  if (entry->value.type != ValueType::u32 || !number || !is_alignment(*number)) {
    fail(ErrorKind::model,
         "{}: key 'general.alignment': is {} ({}); it must be a u32, a power of two from 8 up", file,
         to_text(entry->value), type_name(entry->value.type));
  }
  return static_cast<uint32_t>(*number);
}

/// a * b, or nothing when it does not fit an int64_t.
std::optional<int64_t> product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

struct TableRow {
  Tensor tensor;  // without its data
  uint64_t offset;
};

std::array<int64_t, 4> read_dims(Cursor& cursor) {
  const auto rank = cursor.read<uint32_t>("the number of dimensions");
  if (rank > 4) cursor.refuse("it has {} dimensions; at most 4 are allowed", rank);
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dim = cursor.read<uint64_t>("a dimension");
    if (dim == 0 || dim > INT64_MAX) {
      cursor.refuse("dimension {} is {}; it must be at least 1 and below 2^63", i, dim);
    }
    dims[i] = static_cast<int64_t>(dim);
  }
  return dims;
}

/// A known type; ids up to the newest that have none are of formats that were given up.
void check_dtype(const Cursor& cursor, uint32_t type) {
  if (tensor::find_dtype(type) != nullptr) return;
  const tensor::DTypeInfo& newest = tensor::newest_dtype();
  const auto newest_id = static_cast<uint32_t>(newest.dtype);
  if (type > newest_id) {
    cursor.refuse(
        "its type {} is unknown; the newest that this build knows is {} ({}), so this may be a file of a "
        "newer program",
        type, newest_id, newest.name);
  }
  cursor.refuse("its type {} is no longer part of the format; convert the model anew, for example to Q8_0",
                type);
}

/// Bytes of the tensor, whose product of dimensions may wrap.
uint64_t tensor_bytes(const Cursor& cursor, const Tensor& tensor) {
  const tensor::DTypeInfo& info = tensor::dtype_info(tensor.dtype);
  if (tensor.cols() % info.block_elements != 0) {
    cursor.refuse("its rows have {} elements, not a multiple of the {} of a {} block", tensor.cols(),
                  info.block_elements, info.name);
  }
  auto elements = product(tensor.dims[0], tensor.dims[1]);
  if (elements) elements = product(*elements, tensor.dims[2]);
  if (elements) elements = product(*elements, tensor.dims[3]);
  std::optional<int64_t> bytes;
  if (elements) bytes = product(*elements / info.block_elements, info.block_bytes);
  if (!bytes) cursor.refuse("its dimensions {} make more bytes than 63 bits can count", shape_text(tensor));
  return static_cast<uint64_t>(*bytes);
}

TableRow read_table_row(Cursor& cursor, size_t index) {
  cursor.enter("tensor", index);
  Tensor tensor{};
  tensor.name = cursor.read_string("the name");
  if (tensor.name.empty()) cursor.refuse("its name is empty");
  if (tensor.name.size() > kMaxTensorName) {
    cursor.refuse("its name {} has {} bytes; at most {} are allowed", quoted(tensor.name), tensor.name.size(),
                  kMaxTensorName);
  }
  cursor.name(tensor.name);
  tensor.dims = read_dims(cursor);
  const auto type = cursor.read<uint32_t>("the type");
  check_dtype(cursor, type);
  tensor.dtype = static_cast<DType>(type);
  tensor.bytes = tensor_bytes(cursor, tensor);
  const auto offset = cursor.read<uint64_t>("the offset");
  return {tensor, offset};
}

/// Sets the tensors' data once the table is read and the data section's start is known.
std::vector<Tensor> place(std::span<const std::byte> bytes, Cursor& cursor,
                          const std::vector<TableRow>& table, uint32_t alignment) {
  const uint64_t padding = (alignment - cursor.position() % alignment) % alignment;
  const uint64_t start = cursor.position() + padding;
  std::vector<Tensor> tensors;
  tensors.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    const TableRow& row = table[i];
    cursor.enter("tensor", i);
    cursor.name(row.tensor.name);
    if (row.offset % alignment != 0) {
      cursor.refuse("its offset {} is not a multiple of the file's alignment {}", row.offset, alignment);
    }
    const uint64_t available = bytes.size() > start ? bytes.size() - start : 0;
    if (row.offset > available || row.tensor.bytes > available - row.offset) {
      cursor.refuse(
          "its {} bytes ({} {}) at offset {} of the data reach past the end of the file, which has {} bytes "
          "of data: it is incomplete or damaged, fetch it again",
          row.tensor.bytes, tensor::dtype_name(row.tensor.dtype), shape_text(row.tensor), row.offset,
          available);
    }
    tensors.push_back(row.tensor);
    tensors.back().data = bytes.data() + start + row.offset;
  }
  return tensors;
}

std::vector<size_t> order_by(size_t count, const auto& less) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, less);
  return order;
}

void check_overlaps(const std::vector<Tensor>& tensors, const std::string& file) {
  const auto order =
      order_by(tensors.size(), [&](size_t a, size_t b) { return tensors[a].data < tensors[b].data; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Tensor& before = tensors[order[i - 1]];
    const Tensor& after = tensors[order[i]];
    if (static_cast<uint64_t>(after.data - before.data) < before.bytes) {
      fail(ErrorKind::model, "{}: tensor {}: its data overlaps that of tensor {}; the file is damaged", file,
           quoted(after.name), quoted(before.name));
    }
  }
}

void check_unique(const char* what, size_t count, const auto& name_of, const std::string& file) {
  const auto order = order_by(count, [&](size_t a, size_t b) { return name_of(a) < name_of(b); });
  for (size_t i = 1; i < order.size(); ++i) {
    if (name_of(order[i - 1]) == name_of(order[i])) {
      fail(ErrorKind::model, "{}: {} {}: is there twice; the file is damaged", file, what,
           quoted(name_of(order[i])));
    }
  }
}

}  // namespace

Part parse(std::span<const std::byte> bytes, const std::string& file) {
  check_magic(bytes, file);
  Cursor cursor(bytes, file);
  cursor.take(4, "the magic");
  Part part;
  part.version = read_version(cursor);
  const size_t tensor_count = read_count(cursor, "the number of tensors", kMinTensorBytes);
  const size_t entry_count = read_count(cursor, "the number of metadata keys", kMinEntryBytes);
  part.entries = read_entries(cursor, entry_count);
  check_unique(
      "key", part.entries.size(), [&](size_t i) { return part.entries[i].key; }, file);
  part.alignment = find_alignment(part.entries, file);
  std::vector<TableRow> table;
  for (size_t i = 0; i < tensor_count; ++i) table.push_back(read_table_row(cursor, i));
  check_unique(
      "tensor", table.size(), [&](size_t i) { return table[i].tensor.name; }, file);
  part.tensors = place(bytes, cursor, table, part.alignment);
  check_overlaps(part.tensors, file);
  return part;
}

}  // namespace retro::gguf
