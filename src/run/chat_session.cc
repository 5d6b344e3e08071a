#include "run/chat_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "run/interrupt.h"
#include "text/stream_decoder.h"

namespace retro::run {

namespace {

engine::EngineOptions chat_engine(int32_t ctx) {
  constexpr int32_t kPrefillRows = 128;
  engine::EngineOptions options;
  options.train = false;
  options.micro_batch = std::min(kPrefillRows, ctx);
  options.set_rows = ctx;
  options.context = ctx;
  options.head_chunk_rows = 1;
  return options;
}

}  // namespace

ChatSession::ChatSession(const ModelContext& context, device::Device& device, const model::Adapter* adapter,
                         const ChatOptions& options)
    : context_(context),
      options_(options),
      engine_(device, adapter,
              engine::plan_engine(context.model, adapter == nullptr ? nullptr : &adapter->layout,
                                  chat_engine(options.ctx))),
      sampler_(options.sampling),
      messages_(std::make_unique<nlohmann::ordered_json>()) {
  reset();
}

ChatSession::~ChatSession() = default;

void ChatSession::reset() {
  *messages_ = nlohmann::ordered_json::array();
  if (!options_.system.empty()) messages_->push_back({{"role", "system"}, {"content", options_.system}});
}

std::vector<text::TokenId> ChatSession::prompt() const {
  if (!context_.chat) {
    std::string text;
    for (const auto& message : *messages_) text += message.at("content").get<std::string>();
    std::vector<text::TokenId> tokens = context_.tokenizer.encode(text, false);
    context_.tokenizer.with_bos(tokens);
    return tokens;
  }
  text::Conversation conversation;
  conversation.messages = messages_.get();
  const text::Rendered rendered = context_.chat->render(conversation, true);
  std::vector<text::TextRun> runs;
  for (const text::Run& run : rendered.runs)
    runs.push_back({run.begin, run.end, run.origin.control_tokens_count()});
  std::vector<text::TokenId> tokens = text::ids_of(context_.tokenizer.encode_runs(rendered.text, runs, {}));
  context_.tokenizer.with_bos(tokens);
  return tokens;
}

// Keys of the longest common beginning are still there; at least the last token is computed for its logits.
std::span<const float> ChatSession::feed(const std::vector<text::TokenId>& tokens) {
  const auto end = std::mismatch(tokens.begin(), tokens.end(), cached_.begin(), cached_.end()).first;
  const size_t kept = std::min(static_cast<size_t>(end - tokens.begin()), tokens.size() - 1);
  const auto logits = engine_.next_logits(std::span(tokens).subspan(kept), static_cast<int32_t>(kept));
  cached_ = tokens;
  return logits;
}

AnswerEnd ChatSession::answer(const std::string& message,
                              const std::function<void(std::string_view)>& stream) {
  messages_->push_back({{"role", "user"}, {"content", message}});
  std::vector<text::TokenId> tokens = prompt();
  if (tokens.empty()) fail(ErrorKind::data, "there is nothing to continue; write some text first");
  if (static_cast<int32_t>(tokens.size()) >= options_.ctx) {
    messages_->erase(messages_->size() - 1);
    fail(ErrorKind::data, "the conversation is {} tokens long, --ctx is {}; /reset starts anew",
         tokens.size(), options_.ctx);
  }
  text::StreamDecoder decoder(context_.tokenizer.vocabulary(), tokens.back());
  std::string answer;
  const auto emit = [&](const std::string& text) {
    answer += text;
    if (!text.empty()) stream(text);
  };
  AnswerEnd end = AnswerEnd::max_new_tokens;
  for (int64_t made = 0; made < options_.max_new_tokens; ++made) {
    if (interrupted()) {
      end = AnswerEnd::interrupted;
      break;
    }
    const text::TokenId next = sampler_.sample(feed(tokens), draws_++);
    if (context_.tokenizer.is_eog(next)) {
      end = AnswerEnd::end_of_turn;
      break;
    }
    emit(decoder.push(next));
    tokens.push_back(next);
    if (static_cast<int32_t>(tokens.size()) >= options_.ctx) {
      end = AnswerEnd::context_full;
      break;
    }
  }
  emit(decoder.flush());
  messages_->push_back({{"role", "assistant"}, {"content", answer}});
  return end;
}

}  // namespace retro::run
