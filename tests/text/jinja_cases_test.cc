// Templates against Python's jinja2 (tools/references/jinja_cases.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja.h"

namespace retro::text {
namespace {

// 2024-07-26, as the reference has it.
constexpr int64_t kNow = 1721952000;

nlohmann::ordered_json read(const std::string& name) {
  std::ifstream file(std::string(RETRO_SOURCE_DIR) + "/tests/data/" + name);
  return nlohmann::ordered_json::parse(file);
}

TEST(JinjaCases, EqualPythonsJinja2) {
  const auto data = read("jinja_cases.json");
  size_t texts = 0;
  size_t errors = 0;
  for (const auto& each : data["cases"]) {
    const auto source = each["template"].get<std::string>();
    std::string text;
    std::string error;
    try {
      text = JinjaTemplate(source).render(data["context"], kNow).text;
    } catch (const Error& caught) {
      error = caught.what();
    }
    if (each.contains("text")) {
      ++texts;
      EXPECT_EQ(error, "") << source;
      EXPECT_EQ(text, error.empty() ? each["text"].get<std::string>() : "") << source;
    } else {
      ++errors;
      EXPECT_NE(error, "") << source << "\nPython: " << each["error"] << "\nwe wrote: " << text;
    }
  }
  EXPECT_GT(texts, 350U);
  EXPECT_GT(errors, 60U);
}

}  // namespace
}  // namespace retro::text
