#include "text/chat_messages.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja_json.h"
#include "text/json_text.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;
using jinja::Arena;
using jinja::Value;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

bool flag(const Json& message, const char* key, size_t index) {
  const Json* value = member(message, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(ErrorKind::data, "message {}: '{}' is true or false", index + 1, key);
  return value->get<bool>();
}

Field field_of(std::string_view key) {
  if (key == "tool_calls") return Field::calls;
  if (key == "reasoning_content" || key == "reasoning" || key == "thinking") return Field::reasoning;
  return Field::other;
}

void set(jinja::Dict& dict, std::string_view key, const Value& value, Origin origin, Arena& arena) {
  dict.set(arena.string(key, origin), value);
}

}  // namespace

std::string content_text(const Json& message, size_t index) {
  const Json* content = member(message, "content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array())
    fail(ErrorKind::data, "message {}: 'content' is text or a list of parts", index + 1);
  std::string text;
  for (const Json& part : *content) {
    const Json* type = part.is_object() ? member(part, "type") : nullptr;
    const Json* piece = part.is_object() ? member(part, "text") : nullptr;
    if (type == nullptr || *type != "text" || piece == nullptr || !piece->is_string()) {
      fail(ErrorKind::data, "message {}: a part of 'content' is {{\"type\": \"text\", \"text\": …}}",
           index + 1);
    }
    text += piece->get_ref<const std::string&>();
  }
  return text;
}

namespace {

/// A call's arguments as an object, from an object or the text of one.
Json read_arguments(const Json* arguments, size_t index, const std::string& name) {
  if (arguments == nullptr) return Json::object();
  if (arguments->is_object()) return *arguments;
  if (arguments->is_string()) {
    const std::string& text = arguments->get_ref<const std::string&>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
    Json parsed = try_parse_json(text);
    if (parsed.is_object()) return parsed;
  }
  fail(ErrorKind::data, "message {}: the arguments of the call to '{}' are an object, or text that holds one",
       index + 1, name);
}

struct Call {
  const Json* id = nullptr;
  std::string name;
  Json arguments;
};

std::vector<Call> read_calls(const Json& message, size_t index) {
  const Json* list = member(message, "tool_calls");
  if (list == nullptr) return {};
  if (!list->is_array()) fail(ErrorKind::data, "message {}: 'tool_calls' is a list", index + 1);
  std::vector<Call> calls;
  for (const Json& item : *list) {
    const Json* inner = item.is_object() ? member(item, "function") : nullptr;
    const Json& function = inner != nullptr ? *inner : item;
    const Json* name = function.is_object() ? member(function, "name") : nullptr;
    if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
      fail(ErrorKind::data, "message {}: a tool call is {{\"function\": {{\"name\": …, \"arguments\": …}}}}",
           index + 1);
    }
    Call call;
    call.id = member(item, "id");
    call.name = name->get<std::string>();
    call.arguments = read_arguments(member(function, "arguments"), index, call.name);
    calls.push_back(std::move(call));
  }
  return calls;
}

Value make_calls(const std::vector<Call>& calls, size_t index, const MessageStyle& style, Arena& arena) {
  const Origin origin(static_cast<int32_t>(index), Field::calls);
  jinja::List* list = arena.list();
  for (const Call& call : calls) {
    jinja::Dict* function = arena.dict();
    set(*function, "name", arena.string(call.name, origin), origin, arena);
    Value arguments = jinja::from_json(call.arguments, origin, arena);
    if (style.arguments_as_text) arguments = Value::of(jinja::to_json(arguments, {}, arena));
    set(*function, "arguments", arguments, origin, arena);
    jinja::Dict* outer = arena.dict();
    if (call.id != nullptr) set(*outer, "id", jinja::from_json(*call.id, origin, arena), origin, arena);
    set(*outer, "type", arena.string("function", origin), origin, arena);
    Value function_value = Value::of(function);
    function_value.origin = origin;
    set(*outer, "function", function_value, origin, arena);
    Value outer_value = Value::of(outer);
    outer_value.origin = origin;
    list->items.push_back(outer_value);
  }
  Value result = Value::of(list);
  result.origin = origin;
  return result;
}

Value wrap_content(const jinja::Str& content, const MessageStyle& style, Arena& arena) {
  if (!style.content_parts) return Value::of(&content);
  jinja::Dict* part = arena.dict();
  set(*part, "type", arena.string("text"), Origin(), arena);
  set(*part, "text", Value::of(&content), Origin(), arena);
  jinja::List* parts = arena.list();
  parts->items.push_back(Value::of(part));
  return Value::of(parts);
}

}  // namespace

const jinja::Str& content_string(const Json& message, size_t index, Arena& arena) {
  const Field field = flag(message, "raw", index) ? Field::raw : Field::content;
  std::string text = content_text(message, index);
  if (flag(message, "is_error", index)) text.insert(0, "ERROR: ");
  return *arena.copy(text, Origin(static_cast<int32_t>(index), field));
}

Value make_plain_message(std::string_view role, const jinja::Str& content, const MessageStyle& style,
                         Arena& arena) {
  jinja::Dict* dict = arena.dict();
  set(*dict, "role", arena.string(role), Origin(), arena);
  set(*dict, "content", wrap_content(content, style, arena), Origin(), arena);
  return Value::of(dict);
}

bool uses_tools(const Json& messages, const Json* tools) {
  if (tools != nullptr && tools->is_array() && !tools->empty()) return true;
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    if (!message.is_object()) return false;
    const Json* role = member(message, "role");
    const Json* calls = member(message, "tool_calls");
    return (role != nullptr && *role == "tool") || (calls != nullptr && !calls->empty());
  });
}

Value make_message(const Json& message, size_t index, const MessageStyle& style, Arena& arena) {
  if (!message.is_object()) fail(ErrorKind::data, "message {} is an object", index + 1);
  const Json* role = member(message, "role");
  if (role == nullptr || !role->is_string()) fail(ErrorKind::data, "message {} needs a 'role'", index + 1);
  const std::string& role_name = role->get_ref<const std::string&>();
  const bool known = std::find(kRoles.begin(), kRoles.end(), role_name) != kRoles.end();
  const bool raw = flag(message, "raw", index);
  const std::vector<Call> calls = read_calls(message, index);
  const Origin other(static_cast<int32_t>(index), Field::other);

  jinja::Dict* dict = arena.dict();
  // Templates build control tokens out of the roles, so a role of the fixed list is theirs.
  set(*dict, "role", arena.string(role_name, known ? Origin() : other), other, arena);
  const jinja::Str& content = content_string(message, index, arena);
  const bool none = content.bytes.empty() && !calls.empty() && style.null_beside_calls;
  set(*dict, "content", none ? Value::none() : wrap_content(content, style, arena), other, arena);
  // A raw turn already holds its calls, as text.
  if (!calls.empty() && !raw) set(*dict, "tool_calls", make_calls(calls, index, style, arena), other, arena);
  for (const auto& [key, value] : message.items()) {
    if (key == "role" || key == "content" || key == "tool_calls" || key == "raw" || key == "is_error")
      continue;
    if (value.is_null()) continue;
    const Origin origin(static_cast<int32_t>(index), field_of(key));
    set(*dict, key, jinja::from_json(value, origin, arena), other, arena);
  }
  Value result = Value::of(dict);
  result.origin = other;
  return result;
}

std::vector<ToolCall> declared_calls(const Json& message, size_t index) {
  std::vector<ToolCall> calls;
  for (const Call& call : read_calls(message, index)) calls.push_back({call.name, call.arguments.dump()});
  return calls;
}

Value make_messages(const Json& messages, size_t count, const MessageStyle& style, Arena& arena) {
  jinja::List* list = arena.list();
  for (size_t i = 0; i < count; ++i) {
    try {
      list->items.push_back(make_message(messages[i], i, style, arena));
    } catch (const Error& error) {
      const std::string frame = fmt::format("message {}", i + 1);
      if (std::string_view(error.what()).starts_with(frame)) throw;
      throw error.within(frame);
    }
  }
  return Value::of(list);
}

Value make_tools(const Json* tools, Arena& arena) {
  if (tools == nullptr || tools->is_null()) return Value::none();
  if (!tools->is_array()) fail(ErrorKind::data, "'tools' is a list");
  if (tools->empty()) return Value::none();
  const Origin origin(-1, Field::tools);
  jinja::List* list = arena.list();
  for (const Json& tool : *tools) {
    const Json* inner = tool.is_object() ? member(tool, "function") : nullptr;
    const Json& function = inner != nullptr ? *inner : tool;
    const Json* name = function.is_object() ? member(function, "name") : nullptr;
    if (name == nullptr || !name->is_string()) {
      fail(ErrorKind::data,
           "'tools': a tool is {{\"type\": \"function\", \"function\": {{\"name\": …, \"description\": …, "
           "\"parameters\": …}}}}, or the inner object alone");
    }
    if (inner != nullptr) {
      list->items.push_back(jinja::from_json(tool, origin, arena));
      continue;
    }
    jinja::Dict* outer = arena.dict();
    set(*outer, "type", arena.string("function", origin), origin, arena);
    set(*outer, "function", jinja::from_json(tool, origin, arena), origin, arena);
    Value value = Value::of(outer);
    value.origin = origin;
    list->items.push_back(value);
  }
  Value result = Value::of(list);
  result.origin = origin;
  return result;
}

}  // namespace retro::text
