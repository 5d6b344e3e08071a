// Prompt files of runs that sample answers: chats that end on a user message, as tokens to continue from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/jsonl.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace retro::data {

enum class PromptUse {
  rollout,     ///< ends on a user message
  evaluation,  ///< may end on an assistant message, a reference answer that the model does not see
};

/// A checked prompt in the shape that templates are given.
struct PromptRecord {
  size_t line = 0;                                         ///< in its file, from 1
  std::shared_ptr<const nlohmann::ordered_json> messages;  ///< ends on a user message
  std::string last_user;                                   ///< its content, as a reward program gets it
  std::optional<std::string> reference;                    ///< the answer of an evaluation file
  std::optional<std::string> rubric;                       ///< for a judge
};

/// Reads one line of a prompt file. Throws Error(data) with what is wrong and how to mend it; file and line
/// are the caller's to add.
PromptRecord parse_prompt(std::string_view text, size_t line, PromptUse use);

/// Checks every line of a prompt file; see check_lines.
std::vector<RecordLine> check_prompts(std::string_view text, const std::string& file, PromptUse use);

/// A prompt file of which every line was checked. Records are parsed when asked for.
class PromptFile {
 public:
  /// Throws Error(data) that lists the bad lines.
  PromptFile(const std::filesystem::path& path, PromptUse use);

  size_t size() const { return lines_.size(); }
  size_t line(size_t index) const { return lines_[index].number; }
  /// Throws Error(data) naming the line when the file was changed since it was checked.
  PromptRecord record(size_t index) const;
  const std::filesystem::path& path() const { return file_.path(); }
  /// XXH3-128 of all bytes.
  std::string fingerprint() const;

 private:
  TextFile file_;
  PromptUse use_;
  std::vector<RecordLine> lines_;
};

/// The tokens that a conversation is continued from: rendered with the generation prompt, one begin token
/// where the metadata asks for one, cut where training cuts, so that earlier assistant turns have the ids
/// that training gives them.
std::vector<int32_t> prompt_tokens(const text::Conversation& conversation, const text::ChatTemplate& chat,
                                   const text::Tokenizer& tokenizer);

/// What a prompt must fit, and the keys that errors name.
struct PromptOptions {
  int64_t ctx = 0;
  int64_t max_new_tokens = 0;
  std::string ctx_name = "training.ctx";
  std::string max_new_tokens_name = "sampling.max_new_tokens";
  std::string template_variables = "{}";  ///< a JSON object
};

/// The tokens of every prompt, in the file's order. Prompt and max_new_tokens fit ctx, or Error(data) lists
/// the lines that do not (the first 20 in full). Error(model) where the template itself fails.
std::vector<std::vector<int32_t>> tokenize_prompts(const PromptFile& file, const text::ChatTemplate& chat,
                                                   const text::Tokenizer& tokenizer,
                                                   const PromptOptions& options);

/// The endless sequence of prompts of a run: pass after pass over the file, each in the file's order or
/// shuffled by (seed, pass). What stands at a position depends on nothing else, so a run resumes anywhere.
class PromptOrder {
 public:
  /// `count`: prompts of the file, at least 1.
  PromptOrder(size_t count, bool shuffled, uint64_t seed);
  /// The index of the prompt at `position`, from 0 on.
  size_t at(int64_t position);

 private:
  size_t count_;
  bool shuffled_;
  uint64_t seed_;
  int64_t pass_ = -1;
  std::vector<size_t> order_;  // of pass_
};

}  // namespace retro::data
