#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace retro {

void Hasher::Free::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

Hasher::Hasher() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

void Hasher::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

std::string Hasher::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_hex(std::string_view text) {
  Hasher hasher;
  hasher.update(text);
  return hasher.hex();
}

}  // namespace retro
