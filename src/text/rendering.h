// Text that remembers where each byte came from: the template, or a field of message i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace retro::text {

/// The part of the input that a run of bytes was copied from.
enum class Field : uint8_t {
  markup,     ///< written by the template (also roles, begin and end tokens): control tokens count
  content,    ///< a message's content
  raw,        ///< a message's content "as generated": control tokens count
  reasoning,  ///< a message's reasoning
  calls,      ///< a message's tool calls
  other,      ///< any other field of a message (a tool's name, a call's id)
  tools,      ///< the tools' declarations; no message
  variable,   ///< a variable of the run document; no message
};

/// Where a byte comes from. `message` is -1 where no message wrote it.
struct Origin {
  int32_t message : 24;
  Field field : 8;

  constexpr Origin() : message(-1), field(Field::markup) {}
  constexpr Origin(int32_t message_index, Field of) : message(message_index), field(of) {}
  constexpr bool operator==(const Origin& other) const {
    return message == other.message && field == other.field;
  }
  /// True where the characters of a control token are that token; elsewhere they stay text.
  constexpr bool control_tokens_count() const { return field == Field::markup || field == Field::raw; }
};

/// Bytes [begin, end) of a text, all of one origin.
struct Run {
  size_t begin = 0;
  size_t end = 0;
  Origin origin;
  bool operator==(const Run& other) const = default;
};

/// A rendered template: `runs` cover `text` without gap, in order; neighbours differ in origin.
struct Rendered {
  std::string text;
  std::vector<Run> runs;
};

}  // namespace retro::text
