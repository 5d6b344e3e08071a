// The chat templates of llama.cpp's source against Python's jinja2 (tools/references/render_templates.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "gguf/reader.h"
#include "tests/support/cache.h"
#include "tests/support/sha256.h"
#include "text/jinja.h"

namespace retro::text {
namespace {

using Json = nlohmann::ordered_json;

// 2024-07-26, as the reference has it.
constexpr int64_t kNow = 1721952000;

Json read(const std::string& name) {
  std::ifstream file(std::string(RETRO_SOURCE_DIR) + "/tests/data/" + name);
  return Json::parse(file);
}

/// What transformers passes to a template.
Json variables_of(const Json& conversation, const Json& reference) {
  Json variables;
  variables["messages"] = conversation["messages"];
  variables["tools"] = conversation.value("tools", Json());
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = conversation["add_generation_prompt"];
  variables["bos_token"] = reference["bos_token"];
  variables["eos_token"] = reference["eos_token"];
  return variables;
}

std::string template_source(const std::string& name) {
  if (!name.ends_with(".gguf")) return read_file(test::cached("llama_models/templates/" + name));
  return std::string(gguf::Reader(test::cached(name)).get_string("tokenizer.chat_template"));
}

TEST(TemplateRenderings, EveryTemplateEqualsPythonsJinja2) {
  const Json reference = read("template_renderings.json");
  const Json conversations = read("conversations.json");
  constexpr std::string_view kRaised = "TemplateError: ";
  size_t equal = 0;
  size_t raised = 0;
  for (const auto& [name, expected] : reference["templates"].items()) {
    const std::string source = template_source(name);
    ASSERT_EQ(test::sha256_hex(source), expected["source_sha256"].get<std::string>())
        << name << " is another file";
    const JinjaTemplate parsed(source);
    for (const Json& conversation : conversations) {
      const auto what = name + ", " + conversation["name"].get<std::string>();
      const Json& outcome = expected["renderings"][conversation["name"].get<std::string>()];
      std::string text;
      std::string error;
      try {
        text = parsed.render(variables_of(conversation, reference), kNow).text;
      } catch (const Error& caught) {
        error = caught.what();
      }
      if (outcome.contains("error")) {
        EXPECT_NE(error, "") << what << "\nPython: " << outcome["error"] << "\nwe wrote: " << text;
        // What a template raises itself reaches the user word for word.
        const auto theirs = outcome["error"].get<std::string>();
        if (theirs.starts_with(kRaised)) {
          EXPECT_NE(error.find(theirs.substr(kRaised.size())), std::string::npos) << what << "\n" << error;
          ++raised;
        }
        continue;
      }
      EXPECT_EQ(error, "") << what;
      EXPECT_EQ(text.size(), outcome[1].get<size_t>()) << what << "\n" << text;
      EXPECT_EQ(test::sha256_hex(text).substr(0, 16), outcome[0].get<std::string>()) << what << "\n" << text;
      ++equal;
    }
  }
  EXPECT_GT(equal, 750U);
  EXPECT_GT(raised, 10U);
}

}  // namespace
}  // namespace retro::text
