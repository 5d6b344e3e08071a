// Real models and vocabularies, fetched once by `./dev fetch`.
#pragma once

#include <filesystem>
#include <string_view>

namespace retro::test {

/// `name` in the cache folder (RETRO_CACHE, else ~/.cache/retrograd); ends the test program when it is
/// absent.
std::filesystem::path cached(std::string_view name);

}  // namespace retro::test
