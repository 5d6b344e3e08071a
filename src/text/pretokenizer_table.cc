#include "text/pretokenizer_table.h"

#include "text/digit_groups.h"
#include "text/pretokenizer_classes.h"

namespace retro::text {

namespace {

// \s would also match U+180E in PCRE2, which Unicode does not count as white space.
#define RETRO_SPACE "\\p{White_Space}"
#define RETRO_NOT_SPACE "\\P{White_Space}"
#define RETRO_LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define RETRO_CONTRACTION "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
#define RETRO_LOWER_CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
#define RETRO_MARKS " ?[^" RETRO_SPACE "\\p{L}\\p{N}]+"
#define RETRO_LINE_ENDS RETRO_SPACE "*[\\r\\n]+"
#define RETRO_SPACES RETRO_SPACE "+(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "+"
#define RETRO_TAIL RETRO_LINE_ENDS "|" RETRO_SPACES

constexpr const char* kGpt2 = RETRO_LOWER_CONTRACTION "| ?\\p{L}+| ?\\p{N}+|" RETRO_MARKS "|" RETRO_SPACES;
constexpr const char* kLlama3 =
    RETRO_CONTRACTION "|" RETRO_LETTERS "|\\p{N}{1,3}|" RETRO_MARKS "[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kQwen2 =
    RETRO_CONTRACTION "|" RETRO_LETTERS "|\\p{N}|" RETRO_MARKS "[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kNumbersWhole =
    RETRO_CONTRACTION "|" RETRO_LETTERS "|\\p{N}+|" RETRO_MARKS "[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kUncontracted = RETRO_LETTERS "|\\p{N}|" RETRO_MARKS "[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kAccents =
    RETRO_CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" RETRO_SPACE
                      "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kBailing = "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" RETRO_LETTERS
                                 "|\\p{N}|" RETRO_MARKS "[\\r\\n]*|" RETRO_SPACE "*[\\r\\n]|" RETRO_SPACES;
constexpr const char* kSeed =
    RETRO_CONTRACTION "|" RETRO_LETTERS "|\\p{N}| ?[^" RETRO_SPACE "\\p{L}\\p{N}\\r\\n]+|" RETRO_TAIL;
// Words of several parts: a letter behind a space goes on.
constexpr const char* kExaoneMoe =
    RETRO_CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}|" RETRO_MARKS
                      "[\\r\\n/]?|" RETRO_SPACE "*[\\r\\n]|" RETRO_SPACES;
// White space by powers of two. Behind a blank no line end can follow in the same run, and looking for one at
// each cut would take the square of the run's length.
constexpr const char* kJais2 = RETRO_CONTRACTION
    "|" RETRO_LETTERS "|\\p{N}{1,3}|" RETRO_MARKS "[\\r\\n]*|(?<![^\\P{White_Space}\\r\\n])" RETRO_LINE_ENDS
    "|" RETRO_SPACE "{512}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "{256}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE
    "{128}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "{64}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE
    "{32}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "{16}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE
    "{8}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "{4}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE
    "{1,2}(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE;

// Capitals before small letters. Only A to Z and a to z are told apart, as llama.cpp does: any other letter
// is both.
#define RETRO_BIG "[^\\P{L}a-z]"
#define RETRO_SMALL "[^\\P{L}A-Z]"
#define RETRO_CASED(contraction)                                                                         \
  "[^\\r\\n\\p{L}\\p{N}]?" RETRO_BIG "*" RETRO_SMALL "+" contraction "|[^\\r\\n\\p{L}\\p{N}]?" RETRO_BIG \
  "+" RETRO_SMALL "*" contraction "|"
#define RETRO_CASED_TAIL RETRO_MARKS "[\\r\\n/]*|" RETRO_TAIL
#define RETRO_ENDING "(?:" RETRO_CONTRACTION ")?"

constexpr const char* kTekken = RETRO_CASED("") "\\p{N}|" RETRO_CASED_TAIL;
constexpr const char* kGpt4o = RETRO_CASED(RETRO_ENDING) "\\p{N}{1,3}|" RETRO_CASED_TAIL;
// The same with combining marks as letters; a class that leaves out all else.
#define RETRO_BIG_OR_MARK "[^a-z\\p{Z}\\p{N}\\p{P}\\p{S}\\p{C}]"
#define RETRO_SMALL_OR_MARK "[^A-Z\\p{Z}\\p{N}\\p{P}\\p{S}\\p{C}]"
constexpr const char* kGraniteEmbed =
    "[^\\r\\n\\p{L}\\p{N}]?" RETRO_BIG_OR_MARK "*" RETRO_SMALL_OR_MARK "+" RETRO_ENDING
    "|[^\\r\\n\\p{L}\\p{N}]?" RETRO_BIG_OR_MARK "+" RETRO_SMALL_OR_MARK "*" RETRO_ENDING
    "|\\p{N}{1,3}|" RETRO_CASED_TAIL;
// With every letter and mark both big and small, the two forms of a word are one.
#define RETRO_MARKED_WORD "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" RETRO_ENDING "|"
constexpr const char* kTinyAya = RETRO_MARKED_WORD "\\p{N}{1,3}|" RETRO_CASED_TAIL;
constexpr const char* kYoutu = RETRO_MARKED_WORD "\\p{N}|" RETRO_CASED_TAIL;
constexpr const char* kKimi = RETRO_HAN "+|[^\\r\\n\\p{L}\\p{N}]?(?:(?!" RETRO_HAN ")\\p{L})++" RETRO_ENDING
                                        "|\\p{N}{1,3}|" RETRO_MARKS "[\\r\\n]*|" RETRO_TAIL;

#define RETRO_ASCII_MARK "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define RETRO_DEEPSEEK_WORDS \
  RETRO_ASCII_MARK "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
constexpr const char* kDeepseek3 = RETRO_DEEPSEEK_WORDS "[\\r\\n]*|" RETRO_TAIL;
constexpr const char* kSpark = RETRO_DEEPSEEK_WORDS "|[\\r\\n]|" RETRO_SPACES;
// Anchored at the first of its blanks, or each of them would look for the end anew.
constexpr const char* kSpacesAtEnd = "(?<!" RETRO_SPACE ")" RETRO_SPACE "++\\z";

constexpr const char* kNumber = "\\p{N}";
constexpr const char* kNumbers = "\\p{N}+";
constexpr const char* kThreeNumbers = "\\p{N}{1,3}";
constexpr const char* kThreeDigits = "[0-9]{3}";
constexpr const char* kPunctuation = "[\\p{P}$+<=>^~|]+";
constexpr const char* kPunctuationAndTick = "[\\p{P}$+<=>^~|`]+";
constexpr const char* kLineEnd = "[\\r\\n]";
constexpr const char* kLines = "[^\\n]+|\\n+";
constexpr const char* kChinese = "[" RETRO_CHINESE_AND_KANA "]+";
constexpr const char* kSentences = " ?[^(" RETRO_SPACE RETRO_SENTENCE_MARKS ")]+";

constexpr uint8_t kNone = 0;

constexpr PretokenizerRules kKnown[] = {
    {"default", kNone, {kPunctuation, kGpt2, kNumbers, kThreeDigits}},
    {"gpt-2", kNone, {kGpt2}},
    {"phi-2", kNone, {kGpt2}},
    {"mpt", kNone, {kGpt2}},
    {"olmo", kNone, {kGpt2}},
    {"jais", kNone, {kGpt2}},
    {"jais-2", kNone, {kJais2}},
    {"trillion", kNone, {kGpt2}},
    {"granite-docling", kNone, {kGpt2}},
    {"exaone4", kNone, {kGpt2}},
    {"gigachat", kNone, {kGpt2}},
    {"a.x-4.0", kNone, {kGpt2}},
    {"mellum", kNone, {kGpt2}},
    {"modern-bert", kNone, {kGpt2}},
    {"roberta-bpe", kNone, {kGpt2}},
    {"jina-es", kNone, {kGpt2}},
    {"jina-de", kNone, {kGpt2}},
    {"jina-v1-en", kNone, {kGpt2}},
    {"jina-v2-es", kNone, {kGpt2}},
    {"jina-v2-de", kNone, {kGpt2}},
    {"jina-v2-code", kNone, {kGpt2}},
    {"smollm", kNone, {kNumber, kGpt2}},
    {"starcoder", kNone, {kNumber, kGpt2}},
    {"refact", kNone, {kNumber, kGpt2}},
    {"command-r", kNone, {kNumber, kGpt2}},
    {"codeshell", kNone, {kNumber, kGpt2}},
    {"exaone", kNone, {kNumber, kGpt2}},
    {"minerva-7b", kNone, {kNumber, kGpt2}},
    {"mellum2", kNone, {kNumber, kGpt2}},
    {"llama-bpe", kIgnoresMerges | kBegins, {kLlama3}},
    {"llama3", kIgnoresMerges | kBegins, {kLlama3}},
    {"llama-v3", kIgnoresMerges | kBegins, {kLlama3}},
    {"falcon3", kIgnoresMerges | kBegins, {kLlama3}},
    {"falcon-h1", kIgnoresMerges | kBegins, {kLlama3}},
    {"pixtral", kIgnoresMerges | kBegins, {kLlama3}},
    {"midm-2.0", kIgnoresMerges | kBegins, {kLlama3}},
    {"lfm2", kIgnoresMerges | kBegins, {kLlama3}},
    {"jina-v5-nano", kIgnoresMerges | kBegins, {kLlama3}},
    {"dbrx", kNone, {kLlama3}},
    {"smaug-bpe", kNone, {kLlama3}},
    {"chatglm-bpe", kNone, {kLlama3}},
    {"glm4", kIgnoresMerges, {kLlama3}},
    {"glm5", kIgnoresMerges, {kLlama3}},
    {"minicpm5", kIgnoresMerges, {kThreeNumbers, kNumbersWhole}},
    {"qwen2", kNone, {kQwen2}},
    {"deepseek-r1-qwen", kNone, {kQwen2}},
    {"kormo", kNone, {kQwen2}},
    {"f2llmv2", kNone, {kQwen2}},
    {"stablelm2", kNone, {kQwen2}},
    {"hunyuan", kNone, {kQwen2}},
    {"solar-open", kNone, {kQwen2}},
    {"megrez", kNone, {kQwen2}},
    {"grok-2", kNone, {kQwen2}},
    {"laguna", kNone, {kLines, kQwen2}},
    {"ufakzeka", kNone, {kUncontracted}},
    {"qwen35", kNone, {kAccents}},
    {"bailingmoe", kNone, {kBailing}},
    {"bailingmoe2", kNone, {kBailing}},
    {"llada-moe", kNone, {kBailing}},
    {"seed-coder", kNone, {kSeed}},
    {"exaone-moe", kNone, {kExaoneMoe}},
    {"tekken", kIgnoresMerges | kBegins, {kTekken}},
    {"gpt-4o", kNone, {kGpt4o}},
    {"llama4", kNone, {kGpt4o}},
    {"kanana2", kNone, {kGpt4o}},
    {"talkie", kNone, {kGpt4o}},
    {"minimax-m2", kNone, {kGpt4o}},
    {"granite-embed-multi-97m", kIgnoresMerges, {kGraniteEmbed}},
    {"tiny_aya", kNone, {cut_before_digit_groups, kTinyAya}},
    {"cohere2moe", kNone, {cut_before_digit_groups, kTinyAya}},
    {"youtu", kIgnoresMerges, {RETRO_YOUTU_SCRIPTS, kYoutu}},
    {"kimi-k2", kNone, {kKimi}},
    {"falcon", kNone, {kPunctuationAndTick, kGpt2, kThreeDigits}},
    {"deepseek-llm",
     kNone,
     {kLineEnd, RETRO_SPACE "?[" RETRO_CASED_LETTERS "]+", RETRO_SPACE "?[" RETRO_WIDE_MARKS "]+",
      kSpacesAtEnd, "[" RETRO_ASIAN "]+", kNumbers}},
    {"deepseek-coder",
     kNone,
     {kLineEnd, RETRO_SPACE "?\\p{L}+", RETRO_SPACE "?\\p{P}+", "[" RETRO_ASIAN "]+", kNumber}},
    {"deepseek-v3", kNone, {kThreeNumbers, kChinese, kDeepseek3}},
    {"hunyuan-dense", kNone, {kThreeNumbers, kChinese, kDeepseek3}},
    {"hy_v4", kNone, {kThreeNumbers, kChinese, kDeepseek3}},
    {"joyai-llm", kNone, {kThreeNumbers, kChinese, kDeepseek3}},
    {"spark2_5", kNone, {kThreeNumbers, kChinese, kSpark, kNumber}},
    {"afmoe", kNone, {cut_before_digit_groups, "[" RETRO_AFMOE_SCRIPTS "]+", kDeepseek3}},
    {"superbpe", kNone, {kNumbers, cut_digits_by_three}},
    {"bloom", kNone, {kSentences}},
    {"poro-chat", kNone, {kSentences}},
    {"gpt3-finnish", kNone, {kSentences}},
    {"viking", kNone, {kSentences, kNumber}},
    {"chameleon",
     kBegins,
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", kNumber, "[\\p{P}!-/:-@\\[-`{-~]",
      kGpt2}},
    {"gemma4", kMarksSpaces | kWholeLineEnds | kAlwaysBegins, {kLines}},
    {"granite-embed-multi-311m", kMarksSpaces | kWholeLineEnds | kAlwaysBegins, {kLines}},
    {"sarvam-moe", kMarksSpaces, {kLines}},
};

}  // namespace

const PretokenizerRules* find_pretokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const auto& rules : kKnown) {
    if (rules.name == name) return &rules;
  }
  return nullptr;
}

std::string known_pretokenizers() {
  std::string names;
  for (const auto& rules : kKnown) {
    names += names.empty() ? "" : ", ";
    names += rules.name;
  }
  return names;
}

}  // namespace retro::text
