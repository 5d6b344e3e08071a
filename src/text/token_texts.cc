#include "text/token_texts.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::text {

void PackedStrings::reserve(size_t count, size_t bytes) {
  ends_.reserve(count + 1);
  bytes_.reserve(bytes);
}

void PackedStrings::push_back(std::string_view string) {
  bytes_ += string;
  ends_.push_back(bytes_.size());
}

TokenTexts::TokenTexts(std::span<const std::string_view> texts) {
  size_t bytes = 0;
  for (const auto text : texts) bytes += text.size();
  texts_.reserve(texts.size(), bytes);
  slots_.resize(std::bit_ceil(2 * texts.size() + 1));
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < texts.size(); ++id) {
    const auto text = texts[id];
    texts_.push_back(text);
    longest_ = std::max(longest_, text.size());
    if (text.empty()) continue;
    const uint64_t hash = XXH3_64bits(text.data(), text.size());
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t at = hash & mask;
    for (; slots_[at].id != kNoToken; at = (at + 1) & mask) {
      if (slots_[at].tag == tag && (*this)[slots_[at].id] == text) {
        fail(ErrorKind::model, "tokens {} and {} of the vocabulary have the same text, {}; texts must differ",
             slots_[at].id, id, printable(text));
      }
    }
    slots_[at] = {tag, static_cast<TokenId>(id)};
  }
}

TokenId TokenTexts::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return kNoToken;
  const size_t mask = slots_.size() - 1;
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask; slots_[at].id != kNoToken; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && (*this)[slots_[at].id] == text) return slots_[at].id;
  }
  return kNoToken;
}

std::string printable(std::string_view text) {
  constexpr size_t kMostBytes = 60;
  const bool cut = text.size() > kMostBytes;
  std::string shown = "'";
  for (size_t at = 0; at < std::min(text.size(), kMostBytes);) {
    const Utf8Step step = utf8_step(text, at);
    const auto bytes = text.substr(at, step.length);
    at += step.length;
    const bool plain = step.kind == Utf8Step::Kind::character && step.character >= 0x20 &&
                       (step.character < 0x7F || step.character > 0x9F);
    if (plain) {
      shown += bytes;
      continue;
    }
    for (const char byte : bytes) shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  }
  return shown + (cut ? "…'" : "'");
}

}  // namespace retro::text
