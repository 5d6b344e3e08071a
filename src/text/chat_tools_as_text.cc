// Tools for templates that know none, as text that any model can read.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat_messages.h"
#include "text/jinja_json.h"
#include "text/json_text.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;
using jinja::Arena;
using jinja::Str;
using jinja::TextBuilder;
using jinja::Value;

constexpr Origin kTools(-1, Field::tools);

/// What the model is told about its tools; null where there are none.
const Str* catalogue(const Json* tools, Arena& arena) {
  const Value list = make_tools(tools, arena);
  if (list.is(jinja::Kind::none)) return nullptr;
  TextBuilder out(arena);
  out.append("# Tools\n\nThese tools can be called; each line declares one in JSON:\n<tools>\n", kTools);
  for (const Value& tool : list.list->items) {
    out.append(*jinja::to_json(tool, {}, arena));
    out.append("\n", kTools);
  }
  out.append(
      "</tools>\n\nTo call a tool, write its name and its arguments in JSON:\n"
      "<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>",
      kTools);
  return out.finish();
}

const Str* joined(const Str& first, std::string_view between, const Str& second, Arena& arena) {
  TextBuilder out(arena);
  out.append(first);
  out.append(between, kTools);
  out.append(second);
  return out.finish();
}

/// The content of an assistant's turn with its calls behind it.
const Str* content_with_calls(const Json& message, size_t index, Arena& arena) {
  const Origin origin(static_cast<int32_t>(index), Field::calls);
  TextBuilder out(arena);
  out.append(content_string(message, index, arena));
  for (const ToolCall& call : declared_calls(message, index)) {
    if (!out.empty()) out.append("\n", origin);
    const Json written = {{"name", call.name}, {"arguments", try_parse_json(call.arguments)}};
    out.append("<tool_call>\n", origin);
    out.append(*jinja::to_json(jinja::from_json(written, origin, arena), {}, arena));
    out.append("\n</tool_call>", origin);
  }
  return out.finish();
}

const Str* result_text(const Json& message, size_t index, Arena& arena) {
  const Origin origin(static_cast<int32_t>(index), Field::other);
  TextBuilder out(arena);
  out.append("<tool_response>\n", origin);
  out.append(content_string(message, index, arena));
  out.append("\n</tool_response>", origin);
  return out.finish();
}

/// Places the catalogue and turns of results while the messages go by.
class Writer {
 public:
  Writer(const Json* tools, const MessageStyle& style, Arena& arena)
      : style_(style), arena_(arena), list_(arena.list()), catalogue_(catalogue(tools, arena)) {}

  void add(const Json& message, size_t index) {
    const Value plain = make_message(message, index, style_, arena_);
    const std::string role = message["role"].get<std::string>();
    const Str* content = &content_string(message, index, arena_);
    if (index == 0 && role != "system" && catalogue_ != nullptr && !style_.refuses_system) {
      push("system", catalogue_);
      catalogue_ = nullptr;
    }
    if (role == "tool") {
      const Str* result = result_text(message, index, arena_);
      results_ = results_ == nullptr ? result : joined(*results_, "\n", *result, arena_);
      return;
    }
    flush();
    if (catalogue_ != nullptr && role == "system" && !style_.refuses_system) {
      push(role, joined(*content, "\n\n", *catalogue_, arena_));
      catalogue_ = nullptr;
    } else if (catalogue_ != nullptr && role == "user") {
      push(role, joined(*catalogue_, "\n\n", *content, arena_));
      catalogue_ = nullptr;
    } else if (plain.dict->find("tool_calls") != nullptr) {
      list_->items.push_back(with_calls_as_text(plain, message, index));
    } else {
      list_->items.push_back(plain);
    }
  }

  Value finish() {
    flush();
    return Value::of(list_);
  }

 private:
  /// The message with its calls in its content; reasoning and the like stay.
  Value with_calls_as_text(const Value& plain, const Json& message, size_t index) {
    const Str* content = content_with_calls(message, index, arena_);
    const Value text = make_plain_message("assistant", *content, style_, arena_);
    for (const auto& [key, value] : plain.dict->items) {
      const std::string_view name = key.string->bytes;
      if (name != "role" && name != "content" && name != "tool_calls") text.dict->set(key, value);
    }
    return text;
  }

  void push(std::string_view role, const Str* content) {
    list_->items.push_back(make_plain_message(role, *content, style_, arena_));
  }

  void flush() {
    if (results_ != nullptr) push("user", results_);
    results_ = nullptr;
  }

  const MessageStyle& style_;
  Arena& arena_;
  jinja::List* list_;
  const Str* catalogue_;
  const Str* results_ = nullptr;
};

}  // namespace

Value make_messages_as_text(const Json& messages, size_t count, const Json* tools, const MessageStyle& style,
                            Arena& arena) {
  Writer writer(tools, style, arena);
  for (size_t i = 0; i < count; ++i) {
    try {
      writer.add(messages[i], i);
    } catch (const Error& error) {
      const std::string frame = fmt::format("message {}", i + 1);
      if (std::string_view(error.what()).starts_with(frame)) throw;
      throw error.within(frame);
    }
  }
  return writer.finish();
}

}  // namespace retro::text
