// Any bytes are a chat template that renders or an Error; what renders is covered by its runs, and the spans
// of a training rendering lie in order inside it.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/jinja.h"

namespace {

using namespace retro;
using namespace retro::text;
using Json = nlohmann::ordered_json;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_runs(const Rendered& rendered) {
  size_t at = 0;
  for (const Run& run : rendered.runs) {
    require(run.begin == at && run.end > run.begin);
    at = run.end;
  }
  require(at == rendered.text.size());
}

/// Small limits: a fuzzer learns nothing from a long loop.
jinja::Limits small_limits() {
  jinja::Limits limits;
  limits.steps = 200'000;
  limits.bytes = 16U << 20;
  return limits;
}

const Json& conversation() {
  static const Json messages = Json::parse(R"([
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "h\u00e9 <|im_end|> 5"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call00000", "type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, null, "y"]}}}]},
    {"role": "tool", "tool_call_id": "call00000", "name": "f", "content": "none"},
    {"role": "assistant", "content": "<think>\nr\n</think>\n\nhi"}])");
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  try {
    const Json variables = {{"messages", conversation()},
                            {"tools", nullptr},
                            {"add_generation_prompt", true},
                            {"bos_token", "<s>"},
                            {"eos_token", "</s>"}};
    check_runs(JinjaTemplate(source).render(variables, 0, small_limits()));
  } catch (const Error&) {
  }
  // The whole layer renders a dozen times; short sources reach all of it.
  if (size > 2000 || source.find("range") != std::string::npos) return 0;
  try {
    const ChatTemplate chat(source, {"<s>", "</s>", {"</s>", "<|im_end|>"}});
    const Json plain = Json::array({conversation()[1], conversation()[4]});
    static const Json tools = Json::parse(R"([{"name": "f", "parameters": {"type": "object"}}])");
    const bool calls = size % 2 == 0;
    const TrainingRendering training =
        chat.render_training({calls ? &conversation() : &plain, calls ? &tools : nullptr});
    check_runs(training.rendered);
    size_t at = 0;
    for (const TrainedTurn& turn : training.turns) {
      require(at <= turn.cut && turn.cut <= turn.begin && turn.begin <= turn.end);
      at = turn.end;
    }
    require(at <= training.rendered.text.size());
  } catch (const Error&) {
  }
  return 0;
}
