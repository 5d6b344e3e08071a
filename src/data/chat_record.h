// One conversation of a chat file: the rules that a record keeps, and its one normal form.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

namespace retro::data {

/// A checked record in the shape that templates are given. Content is always text (parts joined, "" where a
/// turn with calls has none); a call is `{id, type, function: {name, arguments}}` with its arguments as an
/// object and an id (`call_0`, `call_1`, … through the record where it had none); a tool message has
/// `tool_call_id` and `name`.
struct ChatRecord {
  size_t line = 0;                                         ///< in its file, from 1
  std::shared_ptr<const nlohmann::ordered_json> messages;  ///< an array, not empty
  std::shared_ptr<const nlohmann::ordered_json> tools;     ///< an array as the record has it; null where none
};

/// Checks that a record is an object with "messages" and no field but `fields`. Throws Error(data); common
/// shapes of other trainers are named in it.
void check_record_fields(const nlohmann::ordered_json& record, std::span<const std::string_view> fields);

/// Reads one line of a chat file for training. Throws Error(data) with what is wrong and how to mend it; file
/// and line are the caller's to add.
ChatRecord parse_chat_record(std::string_view text, size_t line);

}  // namespace retro::data
