// A conversation with a model: history, its rendering, and answers token by token.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"
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
  std::span<const float> feed(const std::vector<text::TokenId>& tokens);

  const ModelContext& context_;
  ChatOptions options_;
  engine::Engine engine_;
  engine::Sampler sampler_;
  std::unique_ptr<nlohmann::ordered_json> messages_;
  std::vector<text::TokenId> cached_;  // tokens whose keys the engine holds
  uint64_t draws_ = 0;
};

}  // namespace retro::run
