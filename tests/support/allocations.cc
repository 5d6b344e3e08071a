#include "tests/support/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};

void* counted(size_t bytes, size_t alignment) {
  ++allocations;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace retro::test {

int64_t allocations_so_far() {
  return allocations;
}

}  // namespace retro::test
