// Conversations, the templates that render them, and what is trained of the rendering.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "gguf/reader.h"
#include "tests/support/cache.h"
#include "text/chat_template.h"

namespace retro::text {

using Json = nlohmann::ordered_json;

inline ChatTemplate chatml(std::string_view source) {
  return ChatTemplate(source, {"", "<|im_end|>", {"<|im_end|>"}});
}

inline ChatTemplate smollm2() {
  const gguf::Reader file(test::cached("smollm2-135m-q4_1.gguf"));
  return chatml(file.get_string("tokenizer.chat_template"));
}

inline ChatTemplate of_package(const std::string& name,
                               TemplateTokens tokens = {"<s>", "</s>", {"<|im_end|>"}}) {
  return ChatTemplate(read_file(test::cached("llama_models/templates/" + name + ".jinja")),
                      std::move(tokens));
}

inline Json messages(std::string_view text) {
  return Json::parse(text);
}

/// The training rendering, cuts as |, trained bytes in {…}.
inline std::string marked(const ChatTemplate& chat, const Json& conversation, const Json* tools = nullptr) {
  const TrainingRendering training = chat.render_training({&conversation, tools});
  std::string out = training.rendered.text;
  for (auto turn = training.turns.rbegin(); turn != training.turns.rend(); ++turn) {
    out.insert(turn->end, "}");
    out.insert(turn->begin, "{");
    out.insert(turn->cut, "|");
  }
  return out;
}

inline std::string error_of(const ChatTemplate& chat, const Json& conversation, const Json* tools = nullptr) {
  try {
    chat.render_training({&conversation, tools});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline constexpr std::string_view kHi =
    R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"},
  {"role": "user", "content": "assistant"}, {"role": "assistant", "content": "hi"}])";

inline constexpr std::string_view kTools = R"([{"name": "find", "description": "Finds it.",
  "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}])";

inline Json call_record(const Json& arguments, const Json* content) {
  Json record = messages(R"([{"role": "user", "content": "find it"}, {"role": "assistant",
    "tool_calls": [{"id": "call00000", "type": "function", "function": {"name": "find"}}]},
    {"role": "tool", "tool_call_id": "call00000", "name": "find", "content": "none"},
    {"role": "assistant", "content": "It is not there."}])");
  record[1]["tool_calls"][0]["function"]["arguments"] = arguments;
  if (content != nullptr) record[1]["content"] = *content;
  return record;
}

/// Every template of the package, by name.
inline std::vector<std::string> package_templates() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::cached("llama_models/templates"))) {
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_GT(names.size(), 60U);
  return names;
}

}  // namespace retro::text
