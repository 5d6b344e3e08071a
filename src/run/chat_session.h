// A conversation with a model: history, its rendering, and answers token by token.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generator.h"
#include "run/model_context.h"

namespace retro::run {

struct ChatOptions {
  engine::SamplingOptions sampling;
  int64_t max_new_tokens = 512;
  int32_t ctx = 2048;
  std::string system;
};

/// Why an answer ended.
enum class AnswerEnd { end_of_turn, max_new_tokens, context_full, interrupted };

class ChatSession {
 public:
  /// `adapter` may be null. Without a chat template each message continues plain text.
  ChatSession(const ModelContext& context, device::Device& device, const model::Adapter* adapter,
              const ChatOptions& options);
  ~ChatSession();

  /// Answers `message`, handing whole characters to `stream` as they come. Throws Error(data) when the
  /// conversation does not fit ctx.
  AnswerEnd answer(const std::string& message, const std::function<void(std::string_view)>& stream);
  void reset();

 private:
  std::vector<text::TokenId> prompt() const;
  /// Samples up to `most` tokens behind what the generator holds.
  AnswerEnd sample(int64_t most, const std::function<void(text::TokenId)>& emit);

  const ModelContext& context_;
  ChatOptions options_;
  engine::Generator generator_;
  engine::Generator::Id sequence_;  // the conversation so far
  std::unique_ptr<nlohmann::ordered_json> messages_;
  uint64_t draws_ = 0;
};

}  // namespace retro::run
