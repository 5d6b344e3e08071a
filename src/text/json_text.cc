#include "text/json_text.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;

/// Builds the value. An ordered object searches its keys one by one, so the library's own builder takes time
/// quadratic in them; this one looks them up in a table and appends. The library's parser keeps its own
/// stack, so depth costs nothing.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(DuplicateKeys duplicates) : duplicates_(duplicates) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Open& object = open_.back();
    auto& items = object.value->get_ref<Json::object_t&>();
    const auto [found, is_new] = object.keys.emplace(name, items.size());
    if (!is_new && duplicates_ == DuplicateKeys::refused) {
      problem_ = fmt::format("the key '{}' stands twice in one object; keep one of them", name.substr(0, 40));
      return false;
    }
    if (is_new) items.emplace_back(name, Json());
    object.named = &items.data()[found->second].second;
    return true;
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
  Json take() { return std::move(root_); }

 private:
  /// An object or array that is not closed yet.
  struct Open {
    Json* value;
    Json* named = nullptr;  ///< in an object: the value of the last key
    std::unordered_map<std::string, size_t> keys = {};
  };

  /// Where the next value goes. It stays there while it is open: only then could its parent grow.
  Json& place() {
    if (open_.empty()) return root_;
    if (open_.back().value->is_object()) return *open_.back().named;
    return open_.back().value->get_ref<Json::array_t&>().emplace_back();
  }

  bool add(Json value) {
    place() = std::move(value);
    return true;
  }

  bool open(Json value) {
    if (open_.size() == static_cast<size_t>(kMaxJsonDepth)) {
      problem_ = fmt::format("nested more than {} deep; flatten it", kMaxJsonDepth);
      return false;
    }
    Json& at = place();
    at = std::move(value);
    open_.push_back({&at});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  DuplicateKeys duplicates_;
  Json root_;
  std::vector<Open> open_;
  std::string problem_;
};

std::optional<size_t> first_ill_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Step::Kind::character) return at;
    at += step.length;
  }
  return std::nullopt;
}

}  // namespace

Json parse_json(std::string_view text, DuplicateKeys duplicates) {
  if (!utf8_valid(text)) {
    fail(ErrorKind::data, "not UTF-8 at column {}; save the file as UTF-8",
         first_ill_formed(text).value_or(0) + 1);
  }
  Builder builder(duplicates);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    throw Error(ErrorKind::data, builder.problem());
  }
  return builder.take();
}

Json try_parse_json(std::string_view text) {
  try {
    return parse_json(text, DuplicateKeys::last_wins);
  } catch (const Error&) {
    return Json(Json::value_t::discarded);
  }
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace retro::text
