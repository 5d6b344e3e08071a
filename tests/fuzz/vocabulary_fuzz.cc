// Builds a vocabulary from the fuzzer's lines, tokenizes the rest of the input with it and decodes the ids.
//
// Each line adds one thing, told by its first letter: K kind, P pre-tokenizer, B the byte tokens, N/C/U/D/X/Y
// a normal, control, unknown, user-defined, unused or byte token (with a score after a tab), M a merge, and
// s/e/u/t the id of the begin, end, unknown or turn-end token; F sets flags. A line that starts with '=' ends
// the vocabulary; the text follows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using retro::text::TokenType;

struct Input {
  retro::text::VocabularySource source;
  std::deque<std::string> strings;
  std::string_view text;

  void add(std::string_view token, TokenType type, float score) {
    source.tokens.push_back(strings.emplace_back(token));
    source.types.push_back(static_cast<int32_t>(type));
    source.scores.push_back(score);
  }
  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      if (source.model == "gpt2") {
        add(retro::text::byte_character(static_cast<uint8_t>(byte)), TokenType::normal, 0);
      } else {
        add(fmt::format("<0x{:02X}>", byte), TokenType::byte, 0);
      }
    }
  }
};

TokenType type_of(char letter) {
  switch (letter) {
    case 'C':
      return TokenType::control;
    case 'U':
      return TokenType::unknown;
    case 'D':
      return TokenType::user_defined;
    case 'X':
      return TokenType::unused;
    case 'Y':
      return TokenType::byte;
    default:
      return TokenType::normal;
  }
}

void read_line(Input& input, std::string_view line) {
  auto& source = input.source;
  const char letter = line[0];
  const auto rest = line.substr(1);
  const auto number = static_cast<uint32_t>(std::strtoul(std::string(rest).c_str(), nullptr, 10));
  switch (letter) {
    case 'K':
      source.model = rest;
      break;
    case 'P':
      source.pre = rest;
      break;
    case 'B':
      input.add_bytes();
      break;
    case 'M':
      source.merges.push_back(rest);
      break;
    case 's':
      source.bos = number;
      break;
    case 'e':
      source.eos = number;
      break;
    case 'u':
      source.unk = number;
      break;
    case 't':
      source.eot = number;
      break;
    case 'F':
      source.add_bos = (number & 1) != 0;
      source.add_eos = (number & 2) != 0;
      source.add_space_prefix = (number & 4) != 0;
      if ((number & 8) != 0) source.types.clear();
      if ((number & 16) != 0) source.scores.clear();
      break;
    default: {
      const size_t tab = rest.find('\t');
      const float score =
          tab == rest.npos ? 0 : std::strtof(std::string(rest.substr(tab + 1)).c_str(), nullptr);
      input.add(rest.substr(0, tab), type_of(letter), score);
    }
  }
}

Input read_input(std::string_view bytes) {
  Input input;
  input.source.model = "gpt2";
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const auto line = bytes.substr(0, end);
    bytes = end == bytes.npos ? std::string_view() : bytes.substr(end + 1);
    if (line.starts_with('=')) break;
    if (!line.empty()) read_line(input, line);
  }
  input.text = bytes;
  return input;
}

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(const retro::text::Tokenizer& tokenizer, std::string_view text) {
  const size_t third = text.size() / 3;
  const retro::text::TextRun runs[] = {{0, third, true}, {2 * third, text.size(), true}};
  const size_t cuts[] = {third, third + third / 2};
  auto tokens = tokenizer.encode_runs(text, runs, cuts);
  size_t at = 0;
  for (const auto& token : tokens) {
    require(token.begin == at && token.end >= at);
    require(!(token.begin < cuts[0] && token.end > cuts[0]) &&
            !(token.begin < cuts[1] && token.end > cuts[1]));
    const bool in_template = token.end <= third || token.begin >= 2 * third;
    // The unknown token stands for text, whatever the file calls it.
    const auto& vocabulary = tokenizer.vocabulary();
    require(in_template || token.id == vocabulary.unk() || vocabulary.type(token.id) != TokenType::control);
    at = token.end;
  }
  require(at == text.size());
  tokenizer.with_bos(tokens);
  require(retro::text::utf8_valid(tokenizer.decode(retro::text::ids_of(tokens))));
  tokenizer.encode_document(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = read_input({reinterpret_cast<const char*>(data), size});
  try {
    check(retro::text::Tokenizer(input.source), input.text);
  } catch (const retro::Error&) {
  }
  return 0;
}
