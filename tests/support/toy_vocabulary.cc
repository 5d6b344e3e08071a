#include "tests/support/toy_vocabulary.h"

#include <fmt/format.h>

#include <string_view>

namespace retro::test {
namespace {

constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;
constexpr int32_t kByte = 6;

/// Pairs in the order they are learned; "_" stands for a space.
constexpr std::string_view kMerges[] = {"_ t",   "h e",   "_ a", "i n", "e r", "_ s", "o n", "r e",
                                        "_t he", "a t",   "_ w", "l l", "o u", "_ i", "e n", "in g",
                                        "_a n",  "_an d", "_ o", "i s", "o r", "_ c"};

void add(ToyVocabulary& vocabulary, std::string token, int32_t type, float score) {
  vocabulary.tokens.push_back(std::move(token));
  vocabulary.types.push_back(type);
  vocabulary.scores.push_back(score);
}

std::string utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0U | (code >> 6)), static_cast<char>(0x80U | (code & 63U))};
}

/// GPT-2 writes a byte as a printable character: itself where it is one in Latin-1, else the next from
/// U+0100.
std::string byte_character(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  if (printable(byte)) return utf8(static_cast<uint32_t>(byte));
  uint32_t code = 256;
  for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  return utf8(code);
}

/// All bytes, those of plain text first.
std::vector<int> bytes_by_use() {
  std::vector<int> order;
  std::vector<bool> taken(256);
  const auto take = [&](int byte) {
    if (!taken[static_cast<size_t>(byte)]) order.push_back(byte);
    taken[static_cast<size_t>(byte)] = true;
  };
  for (const char c : std::string_view(" \nabcdefghijklmnopqrstuvwxyz.,?!'\"-:0123456789")) take(c);
  for (int byte = 32; byte < 127; ++byte) take(byte);
  for (int byte = 0; byte < 256; ++byte) take(byte);
  return order;
}

std::string with_space(std::string_view text, std::string_view space) {
  std::string result;
  for (const char c : text) result += c == '_' ? std::string(space) : std::string(1, c);
  return result;
}

void resize(ToyVocabulary& vocabulary, int64_t size) {
  if (size <= 0) return;
  const auto wanted = static_cast<size_t>(size);
  for (size_t i = vocabulary.tokens.size(); i < wanted; ++i)
    add(vocabulary, fmt::format("<unused{}>", i), kUnused, -1000);
  vocabulary.tokens.resize(wanted);
  vocabulary.types.resize(wanted);
  vocabulary.scores.resize(wanted);
}

}  // namespace

ToyVocabulary toy_bpe(int64_t size) {
  ToyVocabulary vocabulary;
  for (const char* token : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    add(vocabulary, token, kControl, 0);
  for (const int byte : bytes_by_use()) add(vocabulary, byte_character(byte), kNormal, 0);
  for (const std::string_view pair : kMerges) {
    if (size > 0 && vocabulary.tokens.size() >= static_cast<size_t>(size)) break;
    vocabulary.merges.push_back(with_space(pair, byte_character(' ')));
    const size_t gap = vocabulary.merges.back().find(' ');
    std::string joined = vocabulary.merges.back();
    add(vocabulary, joined.erase(gap, 1), kNormal, 0);
  }
  resize(vocabulary, size);
  return vocabulary;
}

ToyVocabulary toy_spm(int64_t size) {
  constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
  ToyVocabulary vocabulary;
  for (const char* token : {"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"}) {
    add(vocabulary, token, kControl, -1000);
  }
  for (int byte = 0; byte < 256; ++byte) add(vocabulary, fmt::format("<0x{:02X}>", byte), kByte, 0);
  add(vocabulary, "\n", kUserDefined, -1000);
  float score = 0;
  const auto add_piece = [&](std::string piece) { add(vocabulary, std::move(piece), kNormal, score--); };
  for (const std::string_view pair : kMerges) {
    const size_t gap = pair.find(' ');
    add_piece(with_space(std::string(pair).erase(gap, 1), kSpace));
  }
  add_piece(std::string(kSpace));
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.")) {
    add_piece(std::string(1, c));
  }
  resize(vocabulary, size);
  return vocabulary;
}

}  // namespace retro::test
