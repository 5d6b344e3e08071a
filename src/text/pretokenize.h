// Pre-tokenizers: how a model that merges by rank cuts text into pieces that merges do not cross.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/pretokenizer_table.h"

namespace retro::text {

/// The rules of `tokenizer.ggml.pre` by name: a chain, of which each rule cuts every piece of the one before
/// into its matches and what lies between them.
class Pretokenizer {
 public:
  /// Throws Error(model) naming the known ones when `name` is not among them; an empty name is "default".
  explicit Pretokenizer(std::string_view name);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  /// Where the pieces of `text` (well-formed UTF-8) end, ascending; the last is text.size().
  /// Safe to call from several threads.
  void split(std::string_view text, std::vector<size_t>& ends) const;

  /// Whether `trait` (kIgnoresMerges, …) is one of the rules'.
  bool has(uint8_t trait) const { return (rules_->traits & trait) != 0; }

 private:
  struct Pattern;
  const PretokenizerRules* rules_;
  std::vector<Pattern> patterns_;  // one a rule; of a function's, nothing is compiled
};

}  // namespace retro::text
