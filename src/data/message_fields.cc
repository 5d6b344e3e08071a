#include "data/message_fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "text/json_text.h"

namespace retro::data {

namespace {

using Json = nlohmann::ordered_json;
using text::member;

struct MessageField {
  std::string_view name;
  std::string_view role;  ///< the one role that has it; empty: all
};

constexpr std::array kFields = {
    MessageField{"role", ""},
    MessageField{"content", ""},
    MessageField{"name", ""},
    MessageField{"tool_calls", "assistant"},
    MessageField{"raw", "assistant"},
    MessageField{"reasoning_content", "assistant"},
    MessageField{"reasoning", "assistant"},
    MessageField{"thinking", "assistant"},
    MessageField{"tool_call_id", "tool"},
    MessageField{"is_error", "tool"},
};

std::string read_role(const Json& message) {
  const Json* role = member(message, "role");
  if (role == nullptr) fail(ErrorKind::data, "has no \"role\"; it is system, user, assistant or tool");
  for (const char* known : {"system", "user", "assistant", "tool"}) {
    if (*role == known) return known;
  }
  std::string hint;
  if (*role == "developer") hint = " (write \"system\")";
  if (*role == "function") hint = " (write \"tool\")";
  if (*role == "human") hint = " (write \"user\")";
  if (*role == "gpt" || *role == "model" || *role == "bot") hint = " (write \"assistant\")";
  fail(ErrorKind::data, "has the role {}; it must be system, user, assistant or tool{}", shown(*role), hint);
}

void check_fields(const Json& message, const std::string& role) {
  for (const auto& [key, value] : message.items()) {
    if (value.is_null()) continue;
    const auto field = std::find_if(kFields.begin(), kFields.end(),
                                    [&name = key](const MessageField& known) { return known.name == name; });
    if (field == kFields.end()) {
      fail(ErrorKind::data, "has an unknown field {}; remove it, or move it to the record's \"metadata\"",
           shown(Json(key)));
    }
    if (!field->role.empty() && field->role != role) {
      fail(ErrorKind::data, "has \"{}\", which only a message of role {} has; this one is {}", key,
           field->role, role);
    }
    const bool flag = key == "raw" || key == "is_error";
    if (flag && !value.is_boolean())
      fail(ErrorKind::data, "has \"{}\": {}; it is true or false", key, shown(value));
    if (!flag && key != "content" && key != "tool_calls" && !value.is_string()) {
      fail(ErrorKind::data, "has \"{}\": {}; it is a string", key, shown(value));
    }
  }
}

std::string read_content(const Json& message) {
  const Json* content = member(message, "content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    fail(ErrorKind::data,
         "has \"content\": {}; it is a string, or a list of {{\"type\": \"text\", \"text\": …}}",
         shown(*content));
  }
  std::string text;
  for (const Json& part : *content) {
    const Json* type = part.is_object() ? member(part, "type") : nullptr;
    const Json* piece = part.is_object() ? member(part, "text") : nullptr;
    if (type == nullptr || *type != "text" || piece == nullptr || !piece->is_string()) {
      fail(ErrorKind::data,
           "has the content part {}; only parts {{\"type\": \"text\", \"text\": …}} can be trained, others "
           "must be "
           "removed",
           shown(part));
    }
    text += piece->get_ref<const std::string&>();
  }
  return text;
}

Json read_arguments(const Json& function, const std::string& name) {
  const Json* arguments = member(function, "arguments");
  if (arguments != nullptr && arguments->is_object()) return *arguments;
  if (arguments != nullptr && arguments->is_string()) {
    try {
      Json parsed = text::parse_json(arguments->get_ref<const std::string&>());
      if (parsed.is_object()) return parsed;
    } catch (const Error& error) {
      fail(ErrorKind::data, "calls '{}' with arguments {} that are {}", name, shown(*arguments),
           error.what());
    }
  }
  fail(ErrorKind::data,
       "calls '{}' with arguments {}; they are an object, as {{}}, or a string that holds one", name,
       arguments == nullptr ? "left out" : shown(*arguments));
}

Json normal_call(const Json& call, size_t& unnamed_calls) {
  const Json* function = call.is_object() ? member(call, "function") : nullptr;
  if (function == nullptr) function = &call;
  const Json* name = function->is_object() ? member(*function, "name") : nullptr;
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    fail(ErrorKind::data,
         "has the tool call {}; it is {{\"function\": {{\"name\": …, \"arguments\": {{…}}}}}} or the inner "
         "object",
         shown(call));
  }
  if (const Json* type = member(call, "type"); type != nullptr && *type != "function") {
    fail(ErrorKind::data, "has a tool call of type {}; it is \"function\"", shown(*type));
  }
  Json normal = Json::object();
  if (const Json* id = member(call, "id"); id != nullptr) {
    if (!id->is_string() || id->get_ref<const std::string&>().empty()) {
      fail(ErrorKind::data, "has a tool call with the id {}; it is a string that is not empty", shown(*id));
    }
    normal["id"] = *id;
  } else {
    normal["id"] = fmt::format("call_{}", unnamed_calls++);
  }
  normal["type"] = "function";
  normal["function"]["name"] = *name;
  normal["function"]["arguments"] = read_arguments(*function, name->get<std::string>());
  return normal;
}

Json normal_calls(const Json& calls, size_t& unnamed_calls) {
  if (!calls.is_array()) fail(ErrorKind::data, "has \"tool_calls\": {}; it is a list", shown(calls));
  Json normal = Json::array();
  std::set<std::string> ids;
  for (const Json& call : calls) {
    const Json& id = normal.emplace_back(normal_call(call, unnamed_calls))["id"];
    if (!ids.insert(id.get<std::string>()).second) {
      fail(ErrorKind::data, "has two tool calls with the id {}; give each its own", shown(id));
    }
  }
  return normal;
}

}  // namespace

std::string shown(const Json& value) {
  constexpr size_t kShown = 60;
  if (value.is_object()) {
    std::string keys;
    for (const auto& [key, item] : value.items()) {
      if (keys.size() > kShown) break;
      keys += (keys.empty() ? "" : ", ") + shown(Json(key));
    }
    return "{" + keys + "}";
  }
  if (value.is_array()) return fmt::format("[a list of {}]", value.size());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kShown) return text;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

Json normal_message(const Json& message, size_t& calls) {
  if (!message.is_object())
    fail(ErrorKind::data, "is {}; it is an object with role and content", shown(message));
  const std::string role = read_role(message);
  check_fields(message, role);
  Json normal = Json::object();
  normal["role"] = role;
  normal["content"] = read_content(message);
  if (const Json* list = member(message, "tool_calls"); list != nullptr) {
    Json normal_list = normal_calls(*list, calls);
    if (!normal_list.empty()) normal["tool_calls"] = std::move(normal_list);
  }
  for (const auto& [key, value] : message.items()) {
    if (key != "role" && key != "content" && key != "tool_calls" && !value.is_null()) normal[key] = value;
  }
  if (normal["content"].get_ref<const std::string&>().empty() && !normal.contains("tool_calls")) {
    fail(ErrorKind::data, "has no content; write some, or remove the message");
  }
  return normal;
}

}  // namespace retro::data
