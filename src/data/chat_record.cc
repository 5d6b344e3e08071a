#include "data/chat_record.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/message_fields.h"
#include "text/json_text.h"

namespace retro::data {

namespace {

using Json = nlohmann::ordered_json;
using text::member;

/// Common shapes of other trainers, told by a field of their own.
struct ForeignShape {
  const char* field;
  const char* name;
};
constexpr ForeignShape kForeignShapes[] = {
    {"conversations", "ShareGPT"},
    {"instruction", "Alpaca"},
    {"prompt", "prompt/completion"},
    {"completion", "prompt/completion"},
};

/// "messages, tools and metadata".
std::string in_words(std::span<const std::string_view> fields) {
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    text += i == 0 ? "" : i + 1 == fields.size() ? " and " : ", ";
    text += fields[i];
  }
  return text;
}

/// The names of the declared tools.
std::set<std::string> read_tools(const Json& tools) {
  if (!tools.is_array()) fail(ErrorKind::data, "has \"tools\": {}; it is a list", shown(tools));
  std::set<std::string> names;
  for (const Json& tool : tools) {
    const Json* function = tool.is_object() ? member(tool, "function") : nullptr;
    if (function == nullptr) function = &tool;
    const Json* name = function->is_object() ? member(*function, "name") : nullptr;
    if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
      fail(ErrorKind::data,
           "declares the tool {}; it is {{\"type\": \"function\", \"function\": {{\"name\", \"description\", "
           "\"parameters\"}}}} or the inner object",
           shown(tool));
    }
    if (const Json* parameters = member(*function, "parameters");
        parameters != nullptr && !parameters->is_object()) {
      fail(ErrorKind::data, "declares the tool {} with parameters {}; they are a JSON schema, an object",
           shown(*name), shown(*parameters));
    }
    if (!names.insert(name->get<std::string>()).second) {
      fail(ErrorKind::data, "declares the tool {} twice; remove one", shown(*name));
    }
  }
  return names;
}

/// The order of a conversation's messages and the calls that wait for an answer.
class Order {
 public:
  Order(const std::set<std::string>& tools, bool tool_record) : tools_(tools), tool_record_(tool_record) {}

  /// Checks the next message; completes a tool message from the call it answers.
  void next(Json& message) {
    const std::string role = message["role"].get<std::string>();
    if (role != "tool" && !waiting_.empty()) {
      fail(ErrorKind::data,
           "comes before the call {} of '{}' was answered; every call is answered by a tool message first",
           shown(waiting_.front()["id"]), waiting_.front()["function"]["name"].get<std::string>());
    }
    if (role == "tool") {
      answer(message);
    } else if (role == "system") {
      if (!last_.empty() && last_ != "system") {
        fail(ErrorKind::data, "is a system message behind others; system messages come first");
      }
    } else if (role == "user") {
      if (last_ == "user" && !tool_record_) {
        fail(ErrorKind::data,
             "is a second user message in a row; user and assistant alternate. Join the two");
      }
    } else {
      assistant(message);
    }
    last_ = role;
  }

  void end() const {
    if (assistants_ == 0) {
      fail(ErrorKind::data,
           "has no assistant message, so nothing in it can be trained; add one or remove the record");
    }
    if (answered_ && !waiting_.empty()) {
      fail(ErrorKind::data, "ends before the call {} of '{}' was answered; add its tool message",
           shown(waiting_.front()["id"]), waiting_.front()["function"]["name"].get<std::string>());
    }
    if (tool_record_ && last_ != "assistant" && last_ != "tool") {
      fail(ErrorKind::data,
           "ends on a {} message; a record with tools ends on an assistant turn or its results", last_);
    }
  }

 private:
  void assistant(const Json& message) {
    if (last_ == "assistant") {
      fail(ErrorKind::data, "is a second assistant message in a row; join the two, or add what came between");
    }
    if (last_.empty() || last_ == "system") {
      fail(ErrorKind::data,
           "is an assistant message with no user message before it; the first one after system "
           "messages is the user's");
    }
    ++assistants_;
    answered_ = false;
    if (!message.contains("tool_calls")) return;
    for (const Json& call : message["tool_calls"]) {
      const std::string name = call["function"]["name"].get<std::string>();
      if (tools_.count(name) == 0) {
        fail(ErrorKind::data, "calls '{}', which the record's \"tools\" do not declare; declare it there",
             name);
      }
      waiting_.push_back(call);
    }
  }

  void answer(Json& message) {
    if (waiting_.empty()) {
      fail(ErrorKind::data, "is a tool message, but no call waits for an answer; remove it");
    }
    auto call = waiting_.begin();
    if (const Json* id = member(message, "tool_call_id"); id != nullptr) {
      call =
          std::find_if(waiting_.begin(), waiting_.end(), [&](const Json& one) { return one["id"] == *id; });
      if (call == waiting_.end()) {
        fail(ErrorKind::data, "answers the call {}, but the calls that wait are {}; correct its tool_call_id",
             shown(*id), waiting_ids());
      }
    }
    const Json& name = (*call)["function"]["name"];
    if (const Json* given = member(message, "name"); given != nullptr && *given != name) {
      fail(ErrorKind::data, "has the name {}, but the call {} that it answers is of {}; the two must match",
           shown(*given), shown((*call)["id"]), shown(name));
    }
    message["tool_call_id"] = (*call)["id"];
    message["name"] = name;
    waiting_.erase(call);
    answered_ = true;
  }

  std::string waiting_ids() const {
    std::string text;
    for (const Json& call : waiting_) {
      if (text.size() > 100) return text + ", …";
      text += (text.empty() ? "" : ", ") + shown(call["id"]);
    }
    return text;
  }

  const std::set<std::string>& tools_;
  bool tool_record_;
  bool answered_ = false;
  int assistants_ = 0;
  std::string last_;
  std::deque<Json> waiting_;
};

bool uses_tools(const Json& messages, const std::set<std::string>& tools) {
  return !tools.empty() || std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    if (!message.is_object()) return false;
    const Json* calls = member(message, "tool_calls");
    const Json* role = member(message, "role");
    return (calls != nullptr && !calls->empty()) || (role != nullptr && *role == "tool");
  });
}

Json read_messages(const Json& messages, const std::set<std::string>& tools) {
  if (!messages.is_array() || messages.empty()) {
    fail(ErrorKind::data, "has \"messages\": {}; it is a list of at least one message", shown(messages));
  }
  Json normal = Json::array();
  Order order(tools, uses_tools(messages, tools));
  size_t unnamed_calls = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    try {
      Json message = normal_message(messages[i], unnamed_calls);
      order.next(message);
      normal.push_back(std::move(message));
    } catch (const Error& error) {
      fail(ErrorKind::data, "message {} {}", i + 1, error.what());
    }
  }
  order.end();
  return normal;
}

}  // namespace

void check_record_fields(const Json& record, std::span<const std::string_view> fields) {
  if (!record.is_object()) {
    fail(ErrorKind::data, "is {}; each line is one JSON object with \"messages\"", shown(record));
  }
  if (!record.contains("messages")) {
    for (const ForeignShape& shape : kForeignShapes) {
      if (record.contains(shape.field)) {
        fail(ErrorKind::data,
             "is a record in the {} shape (\"{}\"); write it as {{\"messages\": [{{\"role\": \"user\", "
             "\"content\": \"…\"}}, "
             "…]}}. (A later build rewrites such files: `retrograd convert IN OUT`)",
             shape.name, shape.field);
      }
    }
    if (record.contains("chosen") || record.contains("rejected")) {
      fail(ErrorKind::data,
           "is a preference pair (\"chosen\", \"rejected\"); sft trains records with \"messages\"");
    }
    fail(ErrorKind::data,
         "has no \"messages\"; a record is {{\"messages\": [{{\"role\": …, \"content\": …}}, …]}}");
  }
  for (const auto& [key, value] : record.items()) {
    if (std::find(fields.begin(), fields.end(), key) == fields.end()) {
      fail(ErrorKind::data, "has an unknown field {}; a record has {}. Move it to metadata", shown(Json(key)),
           in_words(fields));
    }
  }
}

ChatRecord parse_chat_record(std::string_view text, size_t line) {
  constexpr std::string_view kFields[] = {"messages", "tools", "metadata"};
  const Json record = text::parse_json(text);
  check_record_fields(record, kFields);
  ChatRecord result;
  result.line = line;
  std::set<std::string> names;
  if (const Json* tools = member(record, "tools"); tools != nullptr) {
    names = read_tools(*tools);
    if (!names.empty()) result.tools = std::make_shared<const Json>(*tools);
  }
  result.messages = std::make_shared<const Json>(read_messages(record["messages"], names));
  return result;
}

}  // namespace retro::data
