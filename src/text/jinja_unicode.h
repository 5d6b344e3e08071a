// Code points of UTF-8 text: the character semantics of Python's str.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace retro::text {

/// The code point at `position` (which must be a character's first byte) and its length in bytes. A byte that
/// starts no valid sequence counts as one character, U+FFFD.
struct CodePoint {
  int32_t value = 0;
  size_t size = 0;
};
CodePoint code_point_at(std::string_view text, size_t position);

/// Where the character before `position` begins.
size_t previous_character(std::string_view text, size_t position);
size_t count_characters(std::string_view text);
/// The byte offset of character `index`; the text's size where it is shorter.
size_t offset_of_character(std::string_view text, size_t index);
/// Where `text` stops being UTF-8; npos if it never does.
size_t find_invalid_utf8(std::string_view text);
void append_utf8(int32_t code_point, std::string& out);

bool is_ascii(std::string_view text);
/// str.isspace of one character.
bool is_space(int32_t code_point);
bool is_line_break(int32_t code_point);
bool is_printable(int32_t code_point);
bool is_letter(int32_t code_point);
bool is_decimal(int32_t code_point);
bool is_alphanumeric(int32_t code_point);
bool is_cased_upper(int32_t code_point);
bool is_cased_lower(int32_t code_point);
/// The full case mapping of one character, appended.
void append_upper(int32_t code_point, std::string& out);
void append_lower(int32_t code_point, std::string& out);
void append_title(int32_t code_point, std::string& out);

/// The part of `text` left when whitespace is removed at the start, the end.
size_t skip_space(std::string_view text, size_t begin);
size_t skip_space_back(std::string_view text, size_t end);

}  // namespace retro::text
