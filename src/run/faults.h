// Everything wrong with a document, so that it is told in one go.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "run/document.h"

namespace retro::run {

class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  void add(Position at, std::string text) { faults_.push_back({at, std::move(text)}); }
  /// A fault of a key's own value; rules about it are not checked any further.
  void add_key(std::string_view key, Position at, std::string text) {
    broken_.emplace(key);
    add(at, std::move(text));
  }
  bool broken(std::string_view key) const { return broken_.find(key) != broken_.end(); }
  /// Throws Error(config) with the first 20 faults in the order of their places, if there are any.
  void throw_if_any() const;

 private:
  struct Fault {
    Position at;
    std::string text;
  };
  std::string file_;
  std::vector<Fault> faults_;
  std::set<std::string, std::less<>> broken_;
};

/// `file:line:column`, or the file alone for a line of 0.
std::string format_place(const std::string& file, Position at);

}  // namespace retro::run
