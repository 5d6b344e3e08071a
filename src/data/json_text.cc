#include "data/json_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::data {

namespace {

using Json = nlohmann::ordered_json;

/// Walks the text without building anything; the library's parser keeps its own stack, so depth costs
/// nothing.
class CheckHandler : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem_ = fmt::format("the key '{}' stands twice in one object; keep one of them", name.substr(0, 40));
    return false;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.…] parse error at line 1, column 13: what" → what.
    std::string_view what = error.what();
    if (const size_t column = what.find(", column "); column != std::string_view::npos) {
      what.remove_prefix(column);
      if (const size_t colon = what.find(": "); colon != std::string_view::npos)
        what.remove_prefix(colon + 2);
    }
    constexpr size_t kShown = 200;
    problem_ = fmt::format("not valid JSON at column {}: {}", position, what.substr(0, kShown));
    return false;
  }

  const std::string& problem() const { return problem_; }

 private:
  bool open() {
    keys_.emplace_back();
    if (keys_.size() <= static_cast<size_t>(kMaxJsonDepth)) return true;
    problem_ = fmt::format("nested more than {} deep; flatten it", kMaxJsonDepth);
    return false;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::unordered_set<std::string>> keys_;
  std::string problem_;
};

std::optional<size_t> first_ill_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const text::Utf8Step step = text::utf8_step(text, at);
    if (step.kind != text::Utf8Step::Kind::character) return at;
    at += step.length;
  }
  return std::nullopt;
}

}  // namespace

Json parse_json(std::string_view text) {
  if (!text::utf8_valid(text)) {
    fail(ErrorKind::data, "not UTF-8 at column {}; save the file as UTF-8",
         first_ill_formed(text).value_or(0) + 1);
  }
  CheckHandler handler;
  if (!Json::sax_parse(text.begin(), text.end(), &handler)) {
    throw Error(ErrorKind::data, handler.problem());
  }
  return Json::parse(text.begin(), text.end());
}

}  // namespace retro::data
