// Hashes: FNV-1a for stream keys, XXH3-128 for fingerprints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace retro {

/// 64-bit FNV-1a, stable for ever: random streams are keyed by it.
constexpr uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  return hash;
}

/// XXH3-128 over a stream of bytes.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept = default;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// 32 lower-case hex digits of all bytes so far.
  std::string hex() const;

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

std::string hash_hex(std::string_view text);

}  // namespace retro
