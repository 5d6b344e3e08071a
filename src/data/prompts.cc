#include "data/prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/chat_record.h"
#include "data/message_fields.h"
#include "data/packing.h"
#include "text/json_text.h"

namespace retro::data {

namespace {

using Json = nlohmann::ordered_json;
using text::member;

constexpr std::string_view kFields[] = {"messages", "rubric", "metadata"};

void refuse_tools(const Json& message) {
  if (message["role"] == "tool" || message.contains("tool_calls")) {
    fail(ErrorKind::data,
         "belongs to a tool record; prompts are chats without tools (agent_grpo rolls out with tools). "
         "Remove it");
  }
}

/// Checks that `role` may follow `last` (empty: nothing).
void check_order(const std::string& last, const std::string& role) {
  const bool start = last.empty() || last == "system";
  if (role == "system" && !start) {
    fail(ErrorKind::data, "is a system message behind others; system messages come first");
  }
  if (role == "assistant" && last != "user") {
    fail(ErrorKind::data,
         "is an assistant message with no user message before it; user and assistant alternate");
  }
  if (role == "user" && last == "user") {
    fail(ErrorKind::data, "is a second user message in a row; user and assistant alternate. Join the two");
  }
}

Json read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    fail(ErrorKind::data, "has \"messages\": {}; it is a list of at least one message", shown(messages));
  }
  Json normal = Json::array();
  std::string last;
  size_t unnamed_calls = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    try {
      Json message = normal_message(messages[i], unnamed_calls);
      refuse_tools(message);
      const std::string role = message["role"].get<std::string>();
      check_order(last, role);
      last = role;
      normal.push_back(std::move(message));
    } catch (const Error& error) {
      fail(ErrorKind::data, "message {} {}", i + 1, error.what());
    }
  }
  return normal;
}

/// Takes the reference answer off the end.
std::optional<std::string> take_reference(Json& messages, PromptUse use) {
  if (messages.back()["role"] != "assistant") return std::nullopt;
  if (use == PromptUse::rollout) {
    fail(ErrorKind::data,
         "ends on an assistant message; a prompt ends on the user message that is to be answered. Remove the "
         "answer (an evaluation file may have one, as a reference)");
  }
  std::string reference = messages.back()["content"].get<std::string>();
  messages.erase(messages.size() - 1);
  return reference;
}

std::vector<text::TextRun> template_runs(const text::Rendered& rendered) {
  std::vector<text::TextRun> runs;
  for (const text::Run& run : rendered.runs)
    runs.push_back({run.begin, run.end, run.origin.control_tokens_count()});
  return runs;
}

/// Where training cuts the turns of a conversation, as far as `text` begins as the training rendering does.
std::vector<size_t> turn_cuts(const text::Conversation& conversation, const text::ChatTemplate& chat,
                              std::string_view text) {
  std::vector<size_t> cuts;
  const bool answered = std::any_of(conversation.messages->begin(), conversation.messages->end(),
                                    [](const Json& message) { return message["role"] == "assistant"; });
  if (!answered) return cuts;
  const text::TrainingRendering training = chat.render_training(conversation);
  const std::string_view trained = training.rendered.text;
  const auto same = static_cast<size_t>(
      std::mismatch(text.begin(), text.end(), trained.begin(), trained.end()).first - text.begin());
  for (const text::TrainedTurn& turn : training.turns) {
    if (turn.begin < turn.end && turn.cut <= same && (cuts.empty() || turn.cut > cuts.back())) {
      cuts.push_back(turn.cut);
    }
  }
  return cuts;
}

std::string too_long(int64_t length, const PromptOptions& options) {
  const int64_t all = length + options.max_new_tokens;
  std::string text = fmt::format(
      "the prompt is {0} tokens long, with {1} = {2} that is {3}, and {4} is {5}; set {4} to {3} or more",
      length, options.max_new_tokens_name, options.max_new_tokens, all, options.ctx_name, options.ctx);
  if (length < options.ctx) {
    text += fmt::format(", or {} to {} or less", options.max_new_tokens_name, options.ctx - length);
  }
  return text;
}

}  // namespace

PromptRecord parse_prompt(std::string_view text, size_t line, PromptUse use) {
  const Json record = text::parse_json(text);
  if (record.is_object() && member(record, "tools") != nullptr && !member(record, "tools")->empty()) {
    fail(ErrorKind::data,
         "is a tool record (\"tools\"); prompts are chats without tools (agent_grpo rolls out with tools). "
         "Remove them");
  }
  check_record_fields(record, kFields);
  PromptRecord prompt;
  prompt.line = line;
  Json messages = read_messages(record["messages"]);
  prompt.reference = take_reference(messages, use);
  if (messages.back()["role"] != "user") {
    fail(ErrorKind::data, "ends on a {} message; a prompt ends on the user message that is to be answered",
         messages.back()["role"].get<std::string>());
  }
  if (const Json* rubric = member(record, "rubric"); rubric != nullptr) {
    if (!rubric->is_string() || rubric->get_ref<const std::string&>().empty()) {
      fail(ErrorKind::data, "has \"rubric\": {}; it is a string that is not empty", shown(*rubric));
    }
    prompt.rubric = rubric->get<std::string>();
  }
  prompt.last_user = messages.back()["content"].get<std::string>();
  prompt.messages = std::make_shared<const Json>(std::move(messages));
  return prompt;
}

std::vector<RecordLine> check_prompts(std::string_view text, const std::string& file, PromptUse use) {
  return check_lines(text, file, "{\"messages\": [{\"role\": \"user\", \"content\": \"…\"}]}",
                     [&](const RecordLine& line) { parse_prompt(line.text, line.number, use); });
}

PromptFile::PromptFile(const std::filesystem::path& path, PromptUse use)
    : file_(path, false), use_(use), lines_(check_prompts(file_.text(), path.string(), use)) {}

PromptRecord PromptFile::record(size_t index) const {
  const RecordLine& line = lines_[index];
  try {
    return parse_prompt(line.text, line.number, use_);
  } catch (const Error& error) {
    throw error.within(fmt::format("{}:{} (changed while it was in use)", path().string(), line.number));
  }
}

std::string PromptFile::fingerprint() const {
  Hasher hasher;
  hasher.update(file_.bytes());
  return hasher.hex();
}

std::vector<int32_t> prompt_tokens(const text::Conversation& conversation, const text::ChatTemplate& chat,
                                   const text::Tokenizer& tokenizer) {
  const text::Rendered rendered = chat.render(conversation, true);
  const std::vector<text::TextRun> runs = template_runs(rendered);
  const std::vector<size_t> cuts = turn_cuts(conversation, chat, rendered.text);
  std::vector<text::TokenSpan> tokens = tokenizer.encode_runs(rendered.text, runs, cuts);
  tokenizer.with_bos(tokens);
  return text::ids_of(tokens);
}

std::vector<std::vector<int32_t>> tokenize_prompts(const PromptFile& file, const text::ChatTemplate& chat,
                                                   const text::Tokenizer& tokenizer,
                                                   const PromptOptions& options) {
  constexpr size_t kShown = 20;
  const Json variables = Json::parse(options.template_variables);
  const std::string name = file.path().string();
  std::vector<std::vector<int32_t>> prompts;
  prompts.reserve(file.size());
  std::string problems;
  size_t bad = 0;
  for (size_t i = 0; i < file.size(); ++i) {
    std::string problem;
    try {
      const PromptRecord record = file.record(i);
      text::Conversation conversation;
      conversation.messages = record.messages.get();
      conversation.variables = &variables;
      std::vector<int32_t> ids = prompt_tokens(conversation, chat, tokenizer);
      const auto length = static_cast<int64_t>(ids.size());
      if (length == 0) problem = "the template makes no token of the prompt";
      if (length + options.max_new_tokens > options.ctx) problem = too_long(length, options);
      prompts.push_back(std::move(ids));
    } catch (const Error& error) {
      // A template that fails is the model's fault and would fail again on every line.
      if (error.kind() != ErrorKind::data) throw error.within(fmt::format("{}:{}", name, file.line(i)));
      problem = error.what();
    }
    if (problem.empty() || ++bad > kShown) continue;
    problems += fmt::format("{}{}:{}: {}", bad > 1 ? "\n" : "", name, file.line(i), problem);
  }
  if (bad > kShown) problems += fmt::format("\n{}: and {} more such lines", name, bad - kShown);
  if (bad > 0) throw Error(ErrorKind::data, problems);
  return prompts;
}

PromptOrder::PromptOrder(size_t count, bool shuffled, uint64_t seed)
    : count_(count), shuffled_(shuffled), seed_(seed) {
  RETRO_CHECK(count > 0);
}

size_t PromptOrder::at(int64_t position) {
  const auto count = static_cast<int64_t>(count_);
  if (const int64_t pass = position / count; pass != pass_) {
    pass_ = pass;
    order_ = epoch_order(count_, shuffled_, seed_, pass);
  }
  return order_[static_cast<size_t>(position % count)];
}

}  // namespace retro::data
