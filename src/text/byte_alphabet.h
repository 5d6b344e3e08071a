// The alphabet of byte-level BPE (Radford et al. 2019, GPT-2): one printable character for each byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retro::text {

/// The character that stands for `byte`, in UTF-8 (one or two bytes). Bytes that Latin-1 prints stand for
/// themselves; the other 68 are numbered from U+0100 in the order of their values.
std::string_view byte_character(uint8_t byte);

/// Appends the characters of each byte of `bytes`.
void append_byte_characters(std::string& out, std::string_view bytes);

/// The bytes that `characters` stand for; nothing when one of them is not of the alphabet.
std::optional<std::string> bytes_of_characters(std::string_view characters);

}  // namespace retro::text
