#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/random.h"
#include "tests/support/cache.h"
#include "tests/text/gguf_vocabulary.h"
#include "tests/text/toy_vocabulary.h"
#include "text/pretokenizer_table.h"

namespace retro::text {
namespace {

/// The vocabularies of the llama.cpp package that have reference ids and are of a kind that is read here.
constexpr const char* kReferences[] = {
    "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",     "llama-bpe", "llama-spm",
    "mpt",       "phi-3",          "qwen2",        "qwen35", "refact",  "starcoder",
};

std::vector<std::string> reference_texts(const std::string& file) {
  const std::string all = read_file(file);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t last = 0;
  for (size_t at = 0;;) {
    const size_t end = all.find(separator, at);
    if (end == std::string::npos) break;
    texts.push_back(all.substr(at, end - at));
    at = end + separator.size();
    last = at;
  }
  // One of the files has no separator behind its last text.
  if (last < all.size()) texts.push_back(all.substr(last));
  return texts;
}

std::vector<std::vector<TokenId>> reference_ids(const std::string& file) {
  std::istringstream lines(read_file(file));
  std::vector<std::vector<TokenId>> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back();
    for (TokenId id; numbers >> id;) all.back().push_back(id);
  }
  return all;
}

class LlamaCppReference : public testing::TestWithParam<const char*> {};

TEST_P(LlamaCppReference, IdsAreTheSame) {
  const auto stem = test::cached("llama_models").string() + "/ggml-vocab-" + GetParam() + ".gguf";
  const gguf::Reader file(stem);
  const Tokenizer tokenizer(vocabulary_of(file));
  const auto texts = reference_texts(stem + ".inp");
  const auto ids = reference_ids(stem + ".out");
  ASSERT_GE(texts.size(), 40U);
  ASSERT_EQ(texts.size(), ids.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], false), ids[i]) << "text " << i << ": " << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LlamaCppReference, testing::ValuesIn(kReferences),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(TokenIds, AreThoseOfLlamaTokenize) {
  const auto references = nlohmann::json::parse(read_file(RETRO_SOURCE_DIR "/tests/data/token_ids.json"));
  const std::vector<std::string> texts = references["texts"];
  ASSERT_EQ(references["vocabularies"].size(), 9U);
  for (const auto& [name, ids] : references["vocabularies"].items()) {
    const Tokenizer tokenizer = tokenizer_of(test::cached(name));
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(name + ", text " + std::to_string(i) + ": " + texts[i]);
      EXPECT_EQ(tokenizer.encode(texts[i], false), ids["plain"][i].get<std::vector<TokenId>>());
      EXPECT_EQ(tokenizer.encode(texts[i], true), ids["control"][i].get<std::vector<TokenId>>());
    }
  }
}

uint32_t fnv1a(std::span<const TokenId> ids) {
  uint32_t hash = 0x811C9DC5;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<uint32_t>(id) >> shift) & 0xFF)) * 0x01000193;
    }
  }
  return hash;
}

// Every name that is read here, over a vocabulary of another model where there is none of its own.
TEST(TokenIds, AreThoseOfLlamaCppUnderEachPretokenizer) {
  const auto references =
      nlohmann::ordered_json::parse(read_file(RETRO_SOURCE_DIR "/tests/data/pretokenizer_ids.json"));
  const std::vector<std::string> texts = references["texts"];
  const gguf::Reader bytes(test::cached("llama_models/ggml-vocab-qwen35.gguf"));
  const gguf::Reader characters(test::cached("llama_models/ggml-vocab-gemma-4.gguf"));
  std::string names;
  std::vector<std::pair<const PretokenizerRules*, std::vector<uint32_t>>> seen;
  for (const auto& [name, expected] : references["hashes"].items()) {
    names += (names.empty() ? "" : ", ") + name;
    const auto hashes = expected.get<std::vector<uint32_t>>();
    const auto* const rules = find_pretokenizer(name);
    ASSERT_NE(rules, nullptr) << name;
    const auto twin = std::ranges::find_if(seen, [&](const auto& other) {
      return other.first->traits == rules->traits && other.first->rules == rules->rules;
    });
    if (twin != seen.end()) {
      EXPECT_EQ(twin->second, hashes) << name << " and " << twin->first->name;
      continue;
    }
    seen.emplace_back(rules, hashes);
    const bool marks_spaces = (rules->traits & kMarksSpaces) != 0;
    auto source = vocabulary_of(marks_spaces ? characters : bytes);
    source.model = "gpt2";
    source.pre = name;
    const Tokenizer tokenizer(source);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(fnv1a(tokenizer.encode(texts[i], false)), hashes[i])
          << name << ", text " << i << ": " << texts[i];
    }
  }
  EXPECT_EQ(names, known_pretokenizers());
}

TEST(Tokenizer, LoadsAQuarterOfAMillionWordsWithinThreeTenthsOfASecond) {
  const gguf::Reader file(test::cached("gemma3-270m-q4_k_m.gguf"));
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Tokenizer tokenizer(vocabulary_of(file));
    ASSERT_EQ(tokenizer.size(), 262144U);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 0.3);
}

/// A random text of all planes; `may` filters characters.
template <typename May>
std::string random_text(const RandomStream& random, uint64_t& draw, const May& may) {
  std::u32string pool = U"abcXYZ 012\n\t.,<>'\"éßñЖд中日本語ไทย😀👩\u200D\u0301\uFE0F";
  std::string text;
  for (size_t length = random.below(draw++, 40); length > 0; --length) {
    char32_t character = pool[random.below(draw++, pool.size())];
    if (random.below(draw++, 3) == 0) character = static_cast<char32_t>(random.below(draw++, 0x110000));
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    if (!may(character)) continue;
    std::array<char, 4> bytes{};
    if (character < 0x80) {
      text += static_cast<char>(character);
      continue;
    }
    const size_t count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; --i, character >>= 6)
      bytes[i] = static_cast<char>(0x80 | (character & 0x3F));
    bytes[0] = static_cast<char>((0xF00 >> count) | character);
    text.append(bytes.data(), count);
  }
  return text;
}

struct RoundTrip {
  const char* file;
  bool (*may)(char32_t);
};

constexpr RoundTrip kRoundTrips[] = {
    // SmolLM2 has no tokens for six control characters, nor for the planes of lead bytes F1 and F2.
    {"smollm2-135m-q4_1.gguf",
     [](char32_t c) {
       return c != 0x04 && c != 0x06 && c != 0x13 && c != 0x14 && c != 0x16 && c != 0x1D &&
              (c < 0x40000 || c >= 0xC0000);
     }},
    // A literal U+2581 cannot be told from a space.
    {"gemma3-270m-q4_k_m.gguf", [](char32_t c) { return c != 0x2581; }},
    {"llama_models/ggml-vocab-llama-spm.gguf", [](char32_t c) { return c != 0x2581; }},
    {"llama_models/ggml-vocab-llama-bpe.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-aquila.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-baichuan.gguf", [](char32_t c) { return c != 0x2581; }},
    {"llama_models/ggml-vocab-command-r.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-deepseek-coder.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-deepseek-llm.gguf", [](char32_t) { return true; }},
    // Falcon has none for many control characters, nor for the planes of lead byte F2.
    {"llama_models/ggml-vocab-falcon.gguf",
     [](char32_t c) { return (c >= 0x20 || c == '\t' || c == '\n') && (c < 0x80000 || c >= 0xC0000); }},
    {"llama_models/ggml-vocab-gemma-4.gguf", [](char32_t c) { return c != 0x2581; }},
    {"llama_models/ggml-vocab-gpt-2.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-gpt-neox.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-mpt.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-phi-3.gguf", [](char32_t c) { return c != 0x2581; }},
    {"llama_models/ggml-vocab-qwen2.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-qwen35.gguf", [](char32_t) { return true; }},
    {"llama_models/ggml-vocab-refact.gguf", [](char32_t c) { return c < 0x40000 || c >= 0x80000; }},
    {"llama_models/ggml-vocab-starcoder.gguf", [](char32_t c) { return c < 0x40000 || c >= 0x80000; }},
};

TEST(Tokenizer, DecodingGivesBackRandomUnicode) {
  for (const auto& [file, may] : kRoundTrips) {
    const Tokenizer tokenizer = tokenizer_of(test::cached(file));
    const RandomStream random(3, file);
    uint64_t draw = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random_text(random, draw, may);
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, false)), text) << file;
    }
  }
}

/// Spans follow one another without gap, over all of the text.
void expect_partition(const std::vector<TokenSpan>& tokens, std::string_view text) {
  size_t at = 0;
  for (const TokenSpan& token : tokens) {
    ASSERT_EQ(token.begin, at);
    ASSERT_LE(token.begin, token.end);
    at = token.end;
  }
  ASSERT_EQ(at, text.size());
}

TEST(Tokenizer, SpansPartitionAnyBytesAndNoneCrossesACut) {
  for (const auto& [file, may] : kRoundTrips) {
    const Tokenizer tokenizer = tokenizer_of(test::cached(file));
    const RandomStream random(4, file);
    uint64_t draw = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string text = random_text(random, draw, may);
      if (i % 2 == 1 && !text.empty()) text[random.below(draw++, text.size())] = '\xFF';
      if (i % 3 == 1) text.insert(text.size() / 2, "<|im_end|><end_of_turn></s>");
      std::vector<size_t> cuts{random.below(draw++, text.size() + 1), random.below(draw++, text.size() + 1)};
      std::sort(cuts.begin(), cuts.end());
      const TextRun run{0, cuts[0], true};
      const auto tokens = tokenizer.encode_runs(text, {&run, 1}, cuts);
      ASSERT_NO_FATAL_FAILURE(expect_partition(tokens, text)) << file;
      for (const TokenSpan& token : tokens) {
        for (const size_t cut : cuts) ASSERT_FALSE(token.begin < cut && cut < token.end) << file;
      }
    }
  }
}

TEST(Tokenizer, IllFormedBytesReadAsReplacementCharacters) {
  for (const char* file : {"smollm2-135m-q4_1.gguf", "gemma3-270m-q4_k_m.gguf"}) {
    const Tokenizer tokenizer = tokenizer_of(test::cached(file));
    const std::string text =
        "a\xFF"
        "b \xE2\x96 \xF0\x9F\x98";
    EXPECT_EQ(tokenizer.encode(text, false), tokenizer.encode("a\uFFFDb \uFFFD \uFFFD", false));
    expect_partition(tokenizer.encode_runs(text, {}, {}), text);
  }
}

ToyVocabulary chat_vocabulary() {
  auto toy = ToyVocabulary::byte_level({"a b", "b c", "ab c"});
  toy.add("<s>", TokenType::control);          // 259
  toy.add("<|user|>", TokenType::control);     // 260
  toy.add("<|im_end|>", TokenType::control);   // 261
  toy.add("[tool]", TokenType::user_defined);  // 262
  toy.add("<unk>", TokenType::unknown);        // 263
  toy.source.bos = 259;
  return toy;
}

TEST(EncodeRuns, RecognisesControlTokensOfTheTemplateAlone) {
  const auto toy = chat_vocabulary();
  const Tokenizer tokenizer(toy.source);
  const std::string text = "<|user|><|user|>[tool]<|im_end|><unk>";
  const std::vector<TextRun> runs{{0, 8, true}, {8, 22, false}, {22, 37, true}};
  const auto tokens = tokenizer.encode_runs(text, runs, {});
  expect_partition(tokens, text);
  EXPECT_EQ(tokens.front(), (TokenSpan{260, 0, 8}));
  EXPECT_EQ(tokens[1].id, '<');
  ASSERT_GE(tokens.size(), 3U);
  EXPECT_EQ(tokens[tokens.size() - 3], (TokenSpan{262, 16, 22}));
  EXPECT_EQ(tokens[tokens.size() - 2], (TokenSpan{261, 22, 32}));
  EXPECT_EQ(tokens[tokens.size() - 1], (TokenSpan{263, 32, 37}));
  EXPECT_EQ(tokenizer.encode("<|user|>", true), (std::vector<TokenId>{260}));
  EXPECT_EQ(tokenizer.encode("<|user|>", false).size(), 8U);
  EXPECT_EQ(tokenizer.encode("[tool]", false), (std::vector<TokenId>{262}));
}

TEST(EncodeRuns, AControlTokenLiesInsideTheTemplateWhollyOrIsText) {
  const auto toy = chat_vocabulary();
  const Tokenizer tokenizer(toy.source);
  const std::string text = "<|user|>";
  const std::vector<TextRun> mixed{{0, 2, true}, {2, 6, false}, {6, 8, true}};
  EXPECT_EQ(tokenizer.encode_runs(text, mixed, {}).size(), 8U);
  const std::vector<TextRun> touching{{0, 2, true}, {2, 6, true}, {6, 8, true}};
  EXPECT_EQ(tokenizer.encode_runs(text, touching, {}), (std::vector<TokenSpan>{{260, 0, 8}}));
  const std::vector<TextRun> gap{{0, 2, true}, {3, 8, true}};
  EXPECT_EQ(tokenizer.encode_runs(text, gap, {}).size(), 8U);
}

TEST(EncodeRuns, TextOfSeveralOriginsIsOneStringUnlessCut) {
  const auto toy = chat_vocabulary();
  const Tokenizer tokenizer(toy.source);
  const std::vector<TextRun> runs{{0, 1, true}, {1, 3, false}};
  EXPECT_EQ(tokenizer.encode_runs("abc", runs, {}), (std::vector<TokenSpan>{{258, 0, 3}}));
  const std::vector<size_t> cut{1};
  EXPECT_EQ(tokenizer.encode_runs("abc", runs, cut), (std::vector<TokenSpan>{{'a', 0, 1}, {257, 1, 3}}));
  const std::vector<size_t> inside{4};
  EXPECT_EQ(tokenizer.encode_runs("[tool]", {}, inside).size(), 6U);
  const std::vector<size_t> everywhere{0, 0, 3, 3};
  EXPECT_EQ(tokenizer.encode_runs("abc", runs, everywhere), (std::vector<TokenSpan>{{258, 0, 3}}));
}

TEST(AddedTokens, LongerOnesWinWhereverTheyBegin) {
  auto toy = ToyVocabulary::byte_level({"x y"});
  const TokenId ab = toy.add("ab", TokenType::user_defined);
  const TokenId a = 'a';
  toy.source.types['a'] = static_cast<int32_t>(TokenType::user_defined);
  const TokenId bcd = toy.add("bcd", TokenType::user_defined);
  const TokenId newline = toy.add("\n", TokenType::user_defined);
  const TokenId newlines = toy.add("\n\n\n", TokenType::user_defined);
  const Tokenizer tokenizer(toy.source);
  EXPECT_EQ(tokenizer.encode("abcd", false), (std::vector<TokenId>{a, bcd}));
  EXPECT_EQ(tokenizer.encode("abc", false), (std::vector<TokenId>{ab, 'c'}));
  EXPECT_EQ(tokenizer.encode("\n\n\n\n\n", false), (std::vector<TokenId>{newlines, newline, newline}));
  EXPECT_EQ(tokenizer.encode(std::string(3'000'000, '\n'), false), std::vector<TokenId>(1'000'000, newlines));
}

TEST(BeginToken, IsThereOnceWhereMetadataOrTemplateAskForIt) {
  auto toy = chat_vocabulary();
  for (const bool add_bos : {false, true}) {
    toy.source.add_bos = add_bos;
    const Tokenizer tokenizer(toy.source);
    const auto with_bos = [&](std::string_view text) {
      auto ids = tokenizer.encode(text, true);
      auto spans = tokenizer.encode_runs(text, std::vector<TextRun>{{0, text.size(), true}}, {});
      tokenizer.with_bos(ids);
      tokenizer.with_bos(spans);
      EXPECT_EQ(ids_of(spans), ids);
      return ids;
    };
    using Ids = std::vector<TokenId>;
    EXPECT_EQ(with_bos("x"), add_bos ? (Ids{259, 'x'}) : Ids{'x'});
    EXPECT_EQ(with_bos(""), add_bos ? Ids{259} : Ids{});
    EXPECT_EQ(with_bos("<s>x"), (Ids{259, 'x'}));
    EXPECT_EQ(with_bos("<s><s>x<s><s>"), (Ids{259, 'x', 259, 259}));
  }
}

TEST(BeginToken, DocumentsFollowTheMetadata) {
  auto toy = chat_vocabulary();
  toy.source.eos = 261;
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(Tokenizer(toy.source).encode_document("x"), Ids{'x'});
  toy.source.add_bos = true;
  toy.source.add_eos = true;
  EXPECT_EQ(Tokenizer(toy.source).encode_document("x"), (Ids{259, 'x', 261}));
  // In a document the characters of a begin token are text.
  EXPECT_EQ(Tokenizer(toy.source).encode_document("<s>"), (Ids{259, '<', 's', '>', 261}));
}

}  // namespace
}  // namespace retro::text
