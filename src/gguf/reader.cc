#include "gguf/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "gguf/parse.h"
#include "gguf/split.h"

namespace retro::gguf {
namespace {

constexpr size_t kHashChunk = size_t{8} << 20;

template <typename T>
void hash_number(Hasher& hasher, T number) {
  hasher.update(std::as_bytes(std::span(&number, 1)));
}

void hash_name(Hasher& hasher, std::string_view name) {
  hash_number(hasher, uint64_t{name.size()});
  hasher.update(name);
}

/// Indexes of `items`, sorted by their names.
template <typename Items, typename Name>
std::vector<uint32_t> sorted_by(const Items& items, Name name) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](uint32_t i) { return items[i].*name; });
  return order;
}

template <typename Items, typename Name>
const auto* lookup(const Items& items, const std::vector<uint32_t>& order, Name name,
                   std::string_view wanted) {
  const auto at = std::ranges::lower_bound(order, wanted, {}, [&](uint32_t i) { return items[i].*name; });
  return at != order.end() && items[*at].*name == wanted ? &items[*at] : nullptr;
}

}  // namespace

Reader::Reader(const std::filesystem::path& path) : path_(path) {
  const std::string file = path_.string();
  files_.emplace_back(path_);
  Part first = parse(files_[0].bytes(), file);
  const auto split = split_info(first, file);
  version_ = first.version;
  entries_ = std::move(first.entries);
  tensors_ = std::move(first.tensors);
  keys_by_name_ = sorted_by(entries_, &Entry::key);
  if (split) open_others(*split);
  tensors_by_name_ = sorted_by(tensors_, &Tensor::name);
  for (size_t i = 1; i < tensors_by_name_.size(); ++i) {
    const std::string_view name = tensors_[tensors_by_name_[i]].name;
    if (tensors_[tensors_by_name_[i - 1]].name == name) {
      fail(ErrorKind::model, "{}: tensor {}: is in two parts of the model", file, quoted(name));
    }
  }
}

void Reader::open_others(const SplitInfo& split) {
  const std::string file = path_.string();
  const auto start = part_path(path_, 0, split.count);
  if (!start) {
    fail(ErrorKind::model,
         "{}: is part {} of a model of {} files; they must be named NAME-00001-of-{:05}.gguf and so on", file,
         split.number + 1, split.count, split.count);
  }
  if (split.number != 0) {
    fail(ErrorKind::model, "{}: is part {} of a model of {} files; name the first one, {}", file,
         split.number + 1, split.count, start->string());
  }
  if (*start != path_) {
    fail(ErrorKind::model, "{}: is the first of {} files; it must be named {}", file, split.count,
         start->string());
  }
  for (uint64_t number = 1; number < split.count; ++number) {
    const auto other = *part_path(path_, number, split.count);
    if (!std::filesystem::exists(other)) {
      fail(ErrorKind::model, "{}: part {} of {} of the model is missing: {}", file, number + 1, split.count,
           other.string());
    }
    files_.emplace_back(other);
    const Part part = parse(files_.back().bytes(), other.string());
    check_part([this](std::string_view key) { return find_entry(key); }, split, part, number, other.string());
    tensors_.insert(tensors_.end(), part.tensors.begin(), part.tensors.end());
  }
  if (split.tensors && *split.tensors != tensors_.size()) {
    fail(ErrorKind::model, "{}: key 'split.tensors.count': is {}, but the {} parts hold {} tensors", file,
         *split.tensors, split.count, tensors_.size());
  }
}

uint64_t Reader::tensor_bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), uint64_t{0},
                         [](uint64_t sum, const Tensor& tensor) { return sum + tensor.bytes; });
}

const Entry* Reader::find_entry(std::string_view key) const {
  return lookup(entries_, keys_by_name_, &Entry::key, key);
}

const Value* Reader::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry != nullptr ? &entry->value : nullptr;
}

const Tensor* Reader::find_tensor(std::string_view name) const {
  return lookup(tensors_, tensors_by_name_, &Tensor::name, name);
}

const Tensor& Reader::tensor(std::string_view name) const {
  const Tensor* found = find_tensor(name);
  if (found == nullptr) {
    fail(ErrorKind::model, "{}: tensor {}: is missing; the model is incomplete", path_.string(),
         quoted(name));
  }
  return *found;
}

std::string Reader::fingerprint(const Progress& progress) const {
  Hasher hasher;
  const auto counted =
      std::ranges::count_if(entries_, [](const Entry& entry) { return !is_layout_key(entry.key); });
  hash_number(hasher, static_cast<uint64_t>(counted));
  hash_number(hasher, uint64_t{tensors_.size()});
  for (const Entry& entry : entries_) {
    if (is_layout_key(entry.key)) continue;
    hash_name(hasher, entry.key);
    hasher.update(entry.raw);
  }
  const uint64_t total = tensor_bytes();
  uint64_t done = 0;
  for (const Tensor& tensor : tensors_) {
    hash_name(hasher, tensor.name);
    for (const int64_t dim : tensor.dims) hash_number(hasher, static_cast<uint64_t>(dim));
    hash_number(hasher, static_cast<uint32_t>(tensor.dtype));
    for (auto rest = tensor.span(); !rest.empty(); rest = rest.subspan(std::min(rest.size(), kHashChunk))) {
      const auto chunk = rest.first(std::min(rest.size(), kHashChunk));
      hasher.update(chunk);
      done += chunk.size();
      if (progress) progress(done, total);
    }
  }
  return hasher.hex();
}

}  // namespace retro::gguf
