// A model's chat template: conversations to text, with the spans that training needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/rendering.h"

namespace retro::text {

/// The texts of a vocabulary's special tokens.
struct TemplateTokens {
  std::string bos;                ///< `bos_token`; empty where the vocabulary has none
  std::string eos;                ///< `eos_token`
  std::vector<std::string> ends;  ///< every token that ends an answer (end of turn, end of sequence)
};

/// What is rendered. `messages` is an array of objects with `role` and `content` (text, text parts or null)
/// and, where they apply, `tool_calls`, `tool_call_id`, `name`, `is_error`, `raw`, `reasoning_content`.
struct Conversation {
  const nlohmann::ordered_json* messages = nullptr;
  const nlohmann::ordered_json* tools = nullptr;      ///< OpenAI's shape or flat; null or empty: none
  const nlohmann::ordered_json* variables = nullptr;  ///< an object: variables of the run document
};

/// One assistant turn of a training rendering; offsets are bytes of the rendering's text.
struct TrainedTurn {
  size_t message = 0;
  /// Where the turn's generation prompt ends: tokens are cut here.
  size_t cut = 0;
  /// What is trained: from the content (from `cut` where the turn calls tools or reasons) up to and with the
  /// end-of-turn token. Empty where the template writes nothing of the message.
  size_t begin = 0;
  size_t end = 0;
  /// True where `end` lies behind an end-of-turn token; otherwise the template writes none.
  bool closed = false;
  /// False where the generation prompt is not how the template writes this turn in the full rendering, so
  /// that `cut` is the content's start.
  bool follows_prompt = true;
  /// False where the template leaves out part of the content or the reasoning (as templates do that strip the
  /// thinking of earlier turns).
  bool whole = true;
};

struct TrainingRendering {
  Rendered rendered;
  std::vector<TrainedTurn> turns;
};

/// Immutable; safe to use from several threads.
class ChatTemplate {
 public:
  /// `now` is the civil time, in seconds since 1970, that the template's `strftime_now` sees.
  /// Throws Error(model) naming the line where the source does not parse.
  ChatTemplate(std::string_view source, TemplateTokens tokens, int64_t now = 0);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The text to continue from (with `add_generation_prompt`) or the conversation so far. Missing content is
  /// empty text, never "None"; `arguments` given as text or as an object render alike. Throws Error(data),
  /// naming the message, for a message of a wrong shape, a call the template drops, and where the template
  /// refuses; Error(model) where the template itself fails.
  Rendered render(const Conversation& conversation, bool add_generation_prompt) const;

  /// The conversation and the span of each assistant turn, known from where each byte came from. Every turn
  /// with `tool_calls` is parsed back and must give them. Throws as `render` does.
  TrainingRendering render_training(const Conversation& conversation) const;

  /// True where the template shows declared tools to the model. Where it does not, tools go into the system
  /// prompt, calls are Hermes's `<tool_call>` text and results are user turns.
  bool declares_tools() const;
  /// False where the template declares tools, but writes no calls, or in a markup that we cannot parse back.
  bool writes_tool_calls() const;
  /// The markup's name, "hermes" where the template has none of its own.
  std::string_view tool_markup() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace retro::text
