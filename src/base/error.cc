#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace retro {

void contract_broken(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal contract broken: %s\n", file, line, condition);
  std::abort();
}

}  // namespace retro
