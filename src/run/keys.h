// The keys of the run document as a table: what each holds, what passes, and where it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "run/document.h"

namespace retro::run {

enum class KeyKind { boolean, integer, real, path, choice, names, command, object };

/// A checked value on its way into the document; the member of the key's kind is set.
struct KeyValue {
  bool boolean = false;
  int64_t integer = 0;
  double real = 0.0;
  size_t choice = 0;  ///< index into Key::choices
  std::string text;
  std::vector<std::string> names;
};

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  bool hold(double value) const {
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
};

using StoreFunction = void (*)(Document&, const KeyValue&);

struct Key {
  std::string_view section;
  std::string_view name;
  KeyKind kind = KeyKind::boolean;
  StoreFunction store = nullptr;
  std::string_view example = "true";  ///< a value that passes, as TOML spells it
  Bounds bounds = {};
  std::vector<std::string_view> choices = {};  ///< of a choice; of an integer, words that pass as well: word
                                               ///< i is stored as -i
  std::vector<std::string_view> later = {};    ///< choices of the format that this build does not have
  std::string_view refusal = {};               ///< why the key is always refused
  bool rollout_only = false;                   ///< read only by runs that sample answers
};

/// Every key this build knows, also those that it refuses by name.
const std::vector<Key>& keys();

constexpr unsigned algorithm_bit(Algorithm algorithm) {
  return 1U << static_cast<unsigned>(algorithm);
}
inline constexpr unsigned kEveryAlgorithm = ~0U;

std::string_view algorithm_name(Algorithm algorithm);

struct Section {
  std::string_view name;                       ///< of a table within another one "grpo.sampling"
  std::string_view refusal = {};               ///< why the section is always refused
  unsigned algorithms = kEveryAlgorithm;       ///< those it goes with, as bits
  void (*open)(Document& document) = nullptr;  ///< makes a section that may be absent
};

/// Why the section does not apply to a run of `algorithm`; empty where it does.
std::string refusal_for(const Section& section, Algorithm algorithm);

const std::vector<Section>& sections();

/// What passes for a key, in words: "a whole number from 1 to 65536".
std::string rule_text(const Key& key);

/// `"a", "b" and "c"`.
std::string listed(const std::vector<std::string_view>& choices);

/// What an unknown key most likely meant, as a phrase: "did you mean 'lr'?".
std::string suggestion(std::string_view section, std::string_view name);

}  // namespace retro::run
