#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "tests/support/cache.h"
#include "tests/text/gguf_vocabulary.h"
#include "tests/text/toy_vocabulary.h"

namespace retro::text {
namespace {

/// The message with which a tokenizer refuses `source`; empty when it takes it.
std::string refusal(const VocabularySource& source) {
  try {
    const Tokenizer tokenizer(source);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  return "";
}

TEST(ByteAlphabet, GivesEachByteItsOwnCharacter) {
  std::set<std::string_view> characters;
  for (int byte = 0; byte < 256; ++byte) characters.insert(byte_character(static_cast<uint8_t>(byte)));
  EXPECT_EQ(characters.size(), 256U);
  EXPECT_EQ(byte_character('A'), "A");
  EXPECT_EQ(byte_character(' '), "Ġ");
  EXPECT_EQ(byte_character('\n'), "Ċ");
  EXPECT_EQ(byte_character(0), "Ā");
  EXPECT_EQ(byte_character(0xAD), "Ń");
  EXPECT_EQ(byte_character(0xFF), "ÿ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string spelled;
  append_byte_characters(spelled, all);
  EXPECT_EQ(bytes_of_characters(spelled), all);
  EXPECT_EQ(bytes_of_characters("中"), std::nullopt);
}

TEST(Vocabulary, DecodesTokensOfBothKinds) {
  const auto toy = ToyVocabulary::byte_level({"Ġ h", "Ã ©"});
  const Vocabulary bytes(toy.source);
  EXPECT_EQ(bytes.bytes(256), " h");
  EXPECT_EQ(bytes.bytes(257), "é");
  EXPECT_EQ(bytes.byte_token(' '), ' ');

  auto pieces = ToyVocabulary::sentencepiece();
  const TokenId hello = pieces.add("▁▁hello▁", TokenType::normal);
  const TokenId raw = pieces.add("▁", TokenType::user_defined);
  const Vocabulary spm(pieces.source);
  EXPECT_EQ(spm.bytes(hello), "  hello ");
  EXPECT_EQ(spm.bytes(raw), "▁");
  EXPECT_EQ(spm.bytes(3 + 0xE2), "\xE2");
  EXPECT_EQ(spm.byte_token(0xE2), 3 + 0xE2);
}

TEST(Vocabulary, NamesWhatIsWrongWithIt) {
  const auto byte_level = [](const std::function<void(ToyVocabulary&)>& spoil) {
    auto toy = ToyVocabulary::byte_level({"a b"});
    spoil(toy);
    return refusal(toy.source);
  };
  const auto pieces = [](const std::function<void(ToyVocabulary&)>& spoil) {
    auto toy = ToyVocabulary::sentencepiece();
    spoil(toy);
    return refusal(toy.source);
  };
  EXPECT_EQ(byte_level([](auto&) {}), "");
  EXPECT_EQ(pieces([](auto&) {}), "");
  const auto expect = [](const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
  };
  expect(byte_level([](auto& toy) { toy.source.model = "bert"; }), {"model", "'bert'", "'gpt2'", "'llama'"});
  expect(byte_level([](auto& toy) { toy.source.tokens.clear(); }), {"tokens", "empty"});
  expect(byte_level([](auto& toy) { toy.source.pre = "whitespace"; }),
         {"pre", "'whitespace'", "default, gpt-2", "llama-bpe", "qwen2"});
  expect(byte_level([](auto& toy) { toy.source.merges.clear(); }), {"merges", "missing"});
  expect(byte_level([](auto& toy) { toy.source.merges.push_back("ab c"); }), {"merge 1", "'ab c'", "'abc'"});
  expect(byte_level([](auto& toy) { toy.source.merges.push_back("xy z"); }), {"merge 1", "'xy z'", "'xy'"});
  expect(byte_level([](auto& toy) { toy.source.merges.push_back("ab"); }), {"merge 1", "'ab'", "two parts"});
  expect(byte_level([](auto& toy) { toy.source.merges.push_back("a "); }), {"merge 1", "two parts"});
  expect(byte_level([](auto& toy) { toy.add("ab", TokenType::normal); }), {"tokens 256 and 257", "'ab'"});
  expect(byte_level([](auto& toy) { toy.source.types.pop_back(); }),
         {"token_type", "256 entries for 257 tokens"});
  expect(byte_level([](auto& toy) { toy.source.types[7] = 9; }), {"token_type", "token 7", "type 9"});
  expect(byte_level([](auto& toy) { toy.source.types[7] = -1; }), {"token 7", "type -1"});
  expect(byte_level([](auto& toy) { toy.source.bos = 257; }), {"bos_token_id", "257", "257 tokens"});
  expect(byte_level([](auto& toy) { toy.source.eos = UINT32_MAX; }), {"eos_token_id", "4294967295"});
  expect(byte_level([](auto& toy) { toy.source.more_eog = {1, 300}; }), {"eog", "300"});
  expect(byte_level([](auto& toy) { toy.source.add_bos = true; }), {"add_bos_token", "bos_token_id"});
  expect(byte_level([](auto& toy) { toy.source.add_eos = true; }), {"add_eos_token", "eos_token_id"});
  expect(pieces([](auto& toy) { toy.source.scores.clear(); }), {"scores", "missing"});
  expect(pieces([](auto& toy) { toy.source.scores.pop_back(); }), {"scores", "258 entries for 259 tokens"});
  expect(pieces([](auto& toy) { toy.source.scores[5] = std::numeric_limits<float>::quiet_NaN(); }),
         {"scores", "token 5"});
}

TEST(Vocabulary, NeedsBytesOrAnUnknownToken) {
  VocabularySource source;
  source.model = "llama";
  source.tokens = {"a", "b"};
  source.scores = {0.0F, 0.0F};
  source.types = {1, 1};
  EXPECT_NE(refusal(source).find("lacks 256 of the 256 byte tokens"), std::string::npos);
  source.unk = 1;
  EXPECT_EQ(refusal(source), "");
  source.unk.reset();
  source.types[0] = 2;
  EXPECT_EQ(refusal(source), "");
}

TEST(Vocabulary, MakesWellKnownTurnEndsControlTokens) {
  auto toy = ToyVocabulary::byte_level({"a b"});
  const TokenId end = toy.add("<|im_end|>", TokenType::user_defined);
  const TokenId struck = toy.add("</s>", TokenType::user_defined);
  const Vocabulary vocabulary(toy.source);
  EXPECT_TRUE(vocabulary.is_control(end));
  EXPECT_TRUE(vocabulary.is_eog(end));
  EXPECT_EQ(vocabulary.eot(), end);
  EXPECT_FALSE(vocabulary.is_control(struck));
  EXPECT_FALSE(vocabulary.is_eog(struck));
  EXPECT_FALSE(vocabulary.is_eog(kNoToken));
  EXPECT_FALSE(vocabulary.is_eog(1 << 20));
}

TEST(Vocabulary, TakesEveryEndThatTheFileNames) {
  auto toy = ToyVocabulary::byte_level({"a b"});
  toy.source.eos = 10;
  toy.source.eot = 11;
  toy.source.eom = 12;
  toy.source.more_eog = {13};
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(vocabulary.eog_ids(), (std::vector<TokenId>{10, 11, 12, 13}));
  EXPECT_EQ(vocabulary.eot(), 11);
}

TEST(Vocabulary, KnowsTheEndsOfRealModels) {
  const auto smollm = tokenizer_of(test::cached("smollm2-135m-q4_1.gguf"));
  const auto spelled = [](const Tokenizer& tokenizer) {
    std::set<std::string> names;
    for (const TokenId id : tokenizer.vocabulary().eog_ids()) names.emplace(tokenizer.vocabulary().text(id));
    return names;
  };
  EXPECT_EQ(spelled(smollm), (std::set<std::string>{"<|endoftext|>", "<|im_end|>", "<reponame>"}));
  EXPECT_EQ(smollm.vocabulary().text(*smollm.vocabulary().eot()), "<|im_end|>");
  EXPECT_EQ(smollm.vocabulary().text(*smollm.vocabulary().bos()), "<|im_start|>");
  const auto gemma = tokenizer_of(test::cached("gemma3-270m-q4_k_m.gguf"));
  EXPECT_EQ(spelled(gemma), (std::set<std::string>{"<eos>", "<end_of_turn>"}));
  EXPECT_TRUE(gemma.vocabulary().add_bos());
  EXPECT_FALSE(gemma.vocabulary().add_space_prefix());
}

TEST(Vocabulary, TakesSentencePieceDefaultsFromCustom) {
  auto toy = ToyVocabulary::sentencepiece();
  toy.source.add_space_prefix.reset();
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(vocabulary.unk(), 0);
  EXPECT_EQ(vocabulary.bos(), 1);
  EXPECT_EQ(vocabulary.eos(), 2);
  EXPECT_TRUE(vocabulary.add_bos());
  EXPECT_FALSE(vocabulary.add_eos());
  EXPECT_TRUE(vocabulary.add_space_prefix());
}

TEST(Vocabulary, ReadsBytesFromNamesWhereTheFileHasNoTypes) {
  auto toy = ToyVocabulary::sentencepiece();
  toy.source.types.clear();
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(vocabulary.type(3), TokenType::byte);
  EXPECT_TRUE(vocabulary.is_control(1));
  EXPECT_TRUE(vocabulary.is_control(2));
}

TEST(Vocabulary, ToleratesEmptyTokens) {
  auto toy = ToyVocabulary::byte_level({"a b"});
  toy.add("", TokenType::control);
  toy.add("", TokenType::user_defined);
  EXPECT_EQ(refusal(toy.source), "");
  EXPECT_EQ(Vocabulary(toy.source).find(""), kNoToken);
}

}  // namespace
}  // namespace retro::text
