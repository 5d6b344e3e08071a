#include "run/chat_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "run/interrupt.h"
#include "text/stream_decoder.h"

namespace retro::run {

namespace {

engine::GeneratorOptions chat_generator(const ModelContext& context, int32_t ctx) {
  constexpr int32_t kPrefillRows = 128;
  engine::GeneratorOptions options;
  options.batch = std::min(kPrefillRows, ctx);
  options.context = ctx;
  options.fast = true;
  options.pages = engine::pages_of(ctx);
  options.end_tokens = context.tokenizer.vocabulary().eog_ids();
  return options;
}

}  // namespace

ChatSession::ChatSession(const ModelContext& context, device::Device& device, const model::Adapter* adapter,
                         const ChatOptions& options)
    : context_(context),
      options_(options),
      generator_(device, context.model, adapter, chat_generator(context, options.ctx)),
      sequence_(generator_.open()),
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

AnswerEnd ChatSession::sample(int64_t most, const std::function<void(text::TokenId)>& emit) {
  engine::SamplingOptions sampling = options_.sampling;
  sampling.first_draw = draws_;
  const auto room = options_.ctx - static_cast<int64_t>(generator_.tokens(sequence_).size());
  generator_.start(sequence_, sampling, static_cast<int32_t>(std::min(most, room)));
  const engine::Completion& answer = generator_.completion(sequence_);
  for (size_t seen = 0; generator_.sampling(sequence_);) {
    if (interrupted()) return AnswerEnd::interrupted;
    generator_.step();
    for (; seen < answer.tokens.size(); ++seen) {
      ++draws_;
      if (!context_.tokenizer.is_eog(answer.tokens[seen])) emit(answer.tokens[seen]);
    }
  }
  if (answer.finish == engine::Finish::end_token) return AnswerEnd::end_of_turn;
  return room <= most ? AnswerEnd::context_full : AnswerEnd::max_new_tokens;
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
  // Keys of the longest common beginning are still there.
  const auto& known = generator_.tokens(sequence_);
  const auto common = std::mismatch(tokens.begin(), tokens.end(), known.begin(), known.end()).first;
  const auto kept = static_cast<size_t>(common - tokens.begin());
  generator_.truncate(sequence_, kept);
  generator_.append(sequence_, std::span(tokens).subspan(kept));
  const AnswerEnd end = sample(options_.max_new_tokens, [&](text::TokenId id) { emit(decoder.push(id)); });
  emit(decoder.flush());
  messages_->push_back({{"role", "assistant"}, {"content", answer}});
  return end;
}

}  // namespace retro::run
