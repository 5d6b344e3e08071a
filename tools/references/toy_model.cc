// toy_model NAME FILE: writes the toy model NAME of tests/support/toy_models.cc, as the tests make it.
// Without arguments: prints the names.
#include <cstdio>
#include <exception>

#include "tests/support/toy_models.h"

int main(int argc, char** argv) {
  try {
    if (argc == 1) {
      for (const auto& toy : retro::test::toy_models()) std::printf("%s\n", toy.name.c_str());
      return 0;
    }
    if (argc != 3) {
      std::fprintf(stderr, "usage: toy_model [NAME FILE]\n");
      return 2;
    }
    retro::test::write_toy_model(argv[2], retro::test::toy_model(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "toy_model: %s\n", error.what());
    return 1;
  }
}
