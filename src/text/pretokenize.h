// Pre-tokenizers: how a byte-level BPE model cuts text into pieces that merges do not cross.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text {

struct PretokenizerRules;

/// The rules of `tokenizer.ggml.pre` by name: a chain of patterns, of which each cuts every piece of the one
/// before into its matches and what lies between them.
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

  /// Whether a piece that is a token's text becomes it without asking the merges.
  bool ignores_merges() const;

 private:
  struct Pattern;
  const PretokenizerRules* rules_;
  std::vector<Pattern> patterns_;
};

/// The known names, comma-separated.
std::string known_pretokenizers();

}  // namespace retro::text
