#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat_messages.h"
#include "text/chat_probe.h"
#include "text/jinja.h"
#include "text/tool_calls.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes [begin, end) of a rendering.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

bool is_own(const Run& run, size_t message) {
  if (run.origin.message != static_cast<int32_t>(message)) return false;
  const Field field = run.origin.field;
  return field == Field::content || field == Field::raw || field == Field::reasoning || field == Field::calls;
}

std::string without_space(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c != ' ' && c != '\n' && c != '\t' && c != '\r'; });
  return out;
}

size_t array_size(const Json* messages) {
  if (messages == nullptr || !messages->is_array()) fail(ErrorKind::data, "'messages' is a list");
  return messages->size();
}

}  // namespace

struct ChatTemplate::Impl {
  Impl(std::string_view source, TemplateTokens special, int64_t time)
      : tokens(std::move(special)), now(time), jinja(source) {}

  Rendered render(const Json& messages, size_t count, const Json* tools, const Json* variables,
                  const MessageStyle& style, bool add_generation_prompt,
                  const jinja::Limits& limits = {}) const;
  Rendered render(const Conversation& conversation, size_t count, bool add_generation_prompt) const {
    MessageStyle style = abilities().style;
    style.tools_as_text =
        !abilities().declares_tools && uses_tools(*conversation.messages, conversation.tools);
    return render(*conversation.messages, count, conversation.tools, conversation.variables, style,
                  add_generation_prompt);
  }
  const TemplateAbilities& abilities() const;
  void check_calls_written(const Conversation& conversation, const Rendered& rendered) const;
  size_t find_cut(const Conversation& conversation, const Rendered& full, TrainedTurn& turn,
                  size_t from) const;
  void find_span(const Json& message, const Rendered& full, size_t from, TrainedTurn& turn) const;
  void check_parses_back(const Json& message, const Rendered& full, const TrainedTurn& turn) const;
  size_t end_token(std::string_view text, size_t& at) const;

  TemplateTokens tokens;
  int64_t now;
  JinjaTemplate jinja;
  mutable std::once_flag probed;
  mutable TemplateAbilities found;
};

Rendered ChatTemplate::Impl::render(const Json& messages, size_t count, const Json* tools,
                                    const Json* variables, const MessageStyle& style,
                                    bool add_generation_prompt, const jinja::Limits& limits) const {
  return jinja.render(
      [&](jinja::Arena& arena, const JinjaTemplate::Bind& bind) {
        bind("bos_token", arena.string(tokens.bos));
        bind("eos_token", arena.string(tokens.eos));
        bind("documents", jinja::Value::none());
        if (variables != nullptr && variables->is_object()) {
          for (const auto& [name, value] : variables->items()) {
            bind(name, jinja::from_json(value, Origin(-1, Field::variable), arena));
          }
        }
        const jinja::Value declared = make_tools(style.tools_as_text ? nullptr : tools, arena);
        if (!declared.is(jinja::Kind::none) || !style.tools_left_out) bind("tools", declared);
        bind("messages", style.tools_as_text ? make_messages_as_text(messages, count, tools, style, arena)
                                             : make_messages(messages, count, style, arena));
        bind("add_generation_prompt", jinja::Value::of(add_generation_prompt));
      },
      now, limits);
}

const TemplateAbilities& ChatTemplate::Impl::abilities() const {
  std::call_once(probed, [this] {
    // A template that loops shall not loop once a sentinel.
    jinja::Limits limits;
    limits.steps = 500'000;
    found =
        probe_template([&](const Json& messages, const Json* tools, const MessageStyle& style, bool prompt) {
          return render(messages, messages.size(), tools, nullptr, style, prompt, limits);
        });
  });
  return found;
}

/// A call that the template leaves out would teach and show something else than the conversation.
void ChatTemplate::Impl::check_calls_written(const Conversation& conversation,
                                             const Rendered& rendered) const {
  for (size_t i = 0; i < conversation.messages->size(); ++i) {
    const Json& message = (*conversation.messages)[i];
    if (message.value("raw", false) || declared_calls(message, i).empty()) continue;
    const Origin calls(static_cast<int32_t>(i), Field::calls);
    const bool written = std::any_of(rendered.runs.begin(), rendered.runs.end(),
                                     [&](const Run& run) { return run.origin == calls; });
    if (!written) {
      fail(ErrorKind::data,
           "message {}: the model's chat template does not write its tool calls; write the turn as the model "
           "shall generate it and mark it \"raw\": true",
           i + 1);
    }
  }
}

/// The first end token in `text`, from `at` on: its start in `at`, its end returned; npos where there is
/// none.
size_t ChatTemplate::Impl::end_token(std::string_view text, size_t& at) const {
  size_t first = std::string_view::npos;
  size_t end = std::string_view::npos;
  for (const std::string& token : tokens.ends) {
    if (token.empty()) continue;
    const size_t found_at = text.find(token, at);
    if (found_at == std::string_view::npos || found_at > first) continue;
    if (found_at == first && found_at + token.size() <= end) continue;
    first = found_at;
    end = found_at + token.size();
  }
  at = first;
  return end;
}

size_t ChatTemplate::Impl::find_cut(const Conversation& conversation, const Rendered& full, TrainedTurn& turn,
                                    size_t from) const {
  std::string reason;
  try {
    const Rendered prompt = render(conversation, turn.message, true);
    if (full.text.starts_with(prompt.text) && prompt.text.size() >= from) return prompt.text.size();
    const auto differs =
        std::mismatch(full.text.begin(), full.text.end(), prompt.text.begin(), prompt.text.end());
    reason = fmt::format("they differ from byte {} on", differs.first - full.text.begin());
  } catch (const Error& error) {
    reason = error.what();
  }
  turn.follows_prompt = false;
  const Json& message = (*conversation.messages)[turn.message];
  if (!declared_calls(message, turn.message).empty() && !message.value("raw", false)) {
    fail(ErrorKind::data,
         "message {}: the model's chat template does not write this turn behind its own generation prompt "
         "({}), so "
         "where its tool calls begin is not known; write the turn as generated and mark it \"raw\": true",
         turn.message + 1, reason);
  }
  for (const Run& run : full.runs) {
    if (run.begin >= from && is_own(run, turn.message)) return run.begin;
  }
  return from;
}

/// From the cut on: the message's own bytes, what the template writes between them, and the first end token
/// behind them. Another message's bytes end the search.
void ChatTemplate::Impl::find_span(const Json& message, const Rendered& full, size_t from,
                                   TrainedTurn& turn) const {
  bool any = false;
  bool whole_turn = false;
  size_t content_end = from;
  turn.begin = turn.end = turn.cut;
  for (const Run& run : full.runs) {
    if (run.end <= turn.cut || run.end <= from) continue;
    if (is_own(run, turn.message)) {
      if (!any) turn.begin = std::max(run.begin, turn.cut);
      any = true;
      turn.end = run.end;
      whole_turn |= run.origin.field == Field::calls || run.origin.field == Field::reasoning;
      if (run.origin.field == Field::content || run.origin.field == Field::raw) content_end = run.end;
      continue;
    }
    if (run.origin.message >= 0 && run.origin.message != static_cast<int32_t>(turn.message)) break;
    if (!any || !run.origin.control_tokens_count()) continue;
    size_t at = 0;
    const size_t end = end_token(std::string_view(full.text).substr(run.begin, run.end - run.begin), at);
    if (end == std::string_view::npos) continue;
    turn.end = run.begin + end;
    turn.closed = true;
    break;
  }
  if (!any) {
    turn.whole = without_space(content_text(message, turn.message)).empty();
    return;
  }
  const std::string_view text = full.text;
  const std::string content = without_space(content_text(message, turn.message));
  turn.whole = without_space(text.substr(from, content_end - from)).ends_with(content);
  for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
    const auto given = message.find(key);
    if (given == message.end() || !given->is_string()) continue;
    const std::string shown = without_space(text.substr(from, turn.end - from));
    turn.whole &= shown.find(without_space(given->get_ref<const std::string&>())) != std::string::npos;
  }
  // A space the template puts before the content, or a mark of the content that it writes anew (`<think>`),
  // is the model's to generate.
  const std::string lead = without_space(text.substr(turn.cut, turn.begin - turn.cut));
  const bool rewritten = !lead.empty() && content.starts_with(lead) &&
                         without_space(text.substr(turn.cut, turn.end - turn.cut)).starts_with(content);
  if (whole_turn || lead.empty() || rewritten) turn.begin = turn.cut;
}

void ChatTemplate::Impl::check_parses_back(const Json& message, const Rendered& full,
                                           const TrainedTurn& turn) const {
  const std::vector<ToolCall> declared = declared_calls(message, turn.message);
  const bool raw = message.value("raw", false);
  if (declared.empty() && !raw) return;
  const ToolMarkup* markup = abilities().markup;
  if (markup == nullptr && !raw && !declared.empty()) {
    fail(ErrorKind::data,
         "message {}: the model's chat template writes tool calls in a markup that cannot be parsed back "
         "yet; write "
         "the turn with <tool_call> and mark it \"raw\": true",
         turn.message + 1);
  }
  if (markup == nullptr) markup = &hermes_markup();
  std::string_view text = std::string_view(full.text).substr(turn.cut, turn.end - turn.cut);
  for (const std::string& end : tokens.ends) {
    if (!end.empty() && text.ends_with(end)) text.remove_suffix(end.size());
  }
  const ParsedTurn parsed = markup->parse(text);
  if (!parsed.problem.empty()) {
    fail(ErrorKind::data, "message {}: its tool calls do not parse back: {}", turn.message + 1,
         parsed.problem);
  }
  if (!same_calls(parsed.calls, declared)) {
    fail(ErrorKind::data,
         "message {}: the turn as written gives {} tool call{} other than the {} in 'tool_calls'",
         turn.message + 1, parsed.calls.size(), parsed.calls.size() == 1 ? "" : "s", declared.size());
  }
}

ChatTemplate::ChatTemplate(std::string_view source, TemplateTokens tokens, int64_t now)
    : impl_(std::make_unique<Impl>(source, std::move(tokens), now)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Rendered ChatTemplate::render(const Conversation& conversation, bool add_generation_prompt) const {
  const size_t count = array_size(conversation.messages);
  Rendered rendered = impl_->render(conversation, count, add_generation_prompt);
  impl_->check_calls_written(conversation, rendered);
  return rendered;
}

TrainingRendering ChatTemplate::render_training(const Conversation& conversation) const {
  TrainingRendering result;
  result.rendered = render(conversation, false);
  const Json& messages = *conversation.messages;
  size_t from = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (message.value("role", "") != "assistant") continue;
    TrainedTurn turn;
    turn.message = i;
    turn.cut = impl_->find_cut(conversation, result.rendered, turn, from);
    impl_->find_span(message, result.rendered, from, turn);
    if (turn.end > turn.begin) impl_->check_parses_back(message, result.rendered, turn);
    from = turn.end;
    result.turns.push_back(turn);
  }
  return result;
}

bool ChatTemplate::declares_tools() const {
  return impl_->abilities().declares_tools;
}

bool ChatTemplate::writes_tool_calls() const {
  return impl_->abilities().markup != nullptr;
}

std::string_view ChatTemplate::tool_markup() const {
  const ToolMarkup* markup = impl_->abilities().markup;
  return markup != nullptr ? markup->name : hermes_markup().name;
}

}  // namespace retro::text
