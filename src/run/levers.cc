#include "run/levers.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace retro::run {

namespace {

const char* name_of(RetainedType type) {
  return type == RetainedType::bf16 ? "\"bf16\"" : type == RetainedType::f16 ? "\"f16\"" : "\"f32\"";
}

void apply(Document& document, const LeverSetting& setting) {
  document.training.micro_batch = setting.micro_batch;
  document.training.gradient_accumulation = setting.gradient_accumulation;
  document.training.gradient_checkpointing = setting.gradient_checkpointing;
  document.training.checkpoint_dtype = setting.checkpoint_dtype;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> LeverSetting::changes(const Document& document) const {
  const TrainingSection& t = document.training;
  std::vector<std::pair<std::string, std::string>> keys;
  if (micro_batch != t.micro_batch) {
    keys.emplace_back("micro_batch", std::to_string(micro_batch));
    keys.emplace_back("gradient_accumulation", std::to_string(gradient_accumulation));
  }
  if (gradient_checkpointing != t.gradient_checkpointing) keys.emplace_back("gradient_checkpointing", "true");
  if (checkpoint_dtype != t.checkpoint_dtype)
    keys.emplace_back("checkpoint_dtype", name_of(checkpoint_dtype));
  return keys;
}

std::vector<LeverSetting> lever_settings(const Document& document, const ModelContext& context,
                                         const Workload& workload) {
  constexpr int64_t kSmallestPass = 16;
  const TrainingSection& t = document.training;
  const model::AdapterLayout layout = adapter_layout(document, context);
  std::vector<LeverSetting> settings = {
      {t.micro_batch, t.gradient_accumulation, t.gradient_checkpointing, t.checkpoint_dtype, 0}};
  LeverSetting next = settings.front();
  while (next.micro_batch % 2 == 0 && next.micro_batch / 2 >= kSmallestPass) {
    next.micro_batch /= 2;
    next.gradient_accumulation *= 2;
    settings.push_back(next);
  }
  if (!next.gradient_checkpointing) {
    next.gradient_checkpointing = true;
    settings.push_back(next);
  }
  if (next.checkpoint_dtype == RetainedType::f32) {
    next.checkpoint_dtype = RetainedType::bf16;
    settings.push_back(next);
  }
  for (LeverSetting& setting : settings) {
    Document changed = document;
    apply(changed, setting);
    const auto plan = engine::plan_engine(context.model, &layout, engine_options(changed, workload));
    setting.bytes =
        plan_memory(context, plan, &layout, optimizer_options(document).kind, document.training.threads)
            .total();
  }
  return settings;
}

std::optional<LeverSetting> first_fit(const std::vector<LeverSetting>& settings, int64_t bytes) {
  const auto at =
      std::find_if(settings.begin(), settings.end(), [&](const LeverSetting& s) { return s.bytes <= bytes; });
  return at == settings.end() ? std::nullopt : std::optional(*at);
}

std::string with_training_keys(const std::string& toml,
                               const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> lines;
  std::istringstream in(toml);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const auto trimmed = [](const std::string& line) {
    const size_t begin = line.find_first_not_of(" \t");
    return begin == std::string::npos ? std::string() : line.substr(begin);
  };
  auto header = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return trimmed(line).starts_with("[training]");
  });
  if (header == lines.end()) {
    lines.emplace_back("");
    header = lines.insert(lines.end(), "[training]");
  }
  const auto section = static_cast<size_t>(header - lines.begin());
  for (const auto& [key, value] : changes) {
    size_t at = section + 1;
    while (at < lines.size() && !trimmed(lines[at]).starts_with("[")) {
      const std::string line = trimmed(lines[at]);
      const size_t after =
          line.starts_with(key) ? line.find_first_not_of(" \t", key.size()) : std::string::npos;
      if (after != std::string::npos && line[after] == '=') break;
      ++at;
    }
    const bool found = at < lines.size() && !trimmed(lines[at]).starts_with("[");
    const std::string text = key + " = " + value;
    if (found) {
      const size_t comment = lines[at].find('#');  // none of these keys' values has one
      lines[at] = text + (comment == std::string::npos ? "" : "  " + lines[at].substr(comment));
    } else {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(section) + 1, text);
    }
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace retro::run
