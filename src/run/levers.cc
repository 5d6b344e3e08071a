#include "run/levers.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "run/toml_file.h"

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
  document.training.chunked_cross_entropy = setting.chunked_cross_entropy;
}

/// The share of a token's work that computing its layers once more is: a forward product for each matrix of
/// the blocks, where the whole is two of these, and two of the head.
double forward_share(const model::Model& model) {
  double layers = 0;
  for (const gguf::Tensor* w : model.block_matrices())
    layers += static_cast<double>(w->rows()) * static_cast<double>(w->cols());
  const model::Hyperparameters& h = model.hyperparameters();
  const double head = static_cast<double>(h.vocabulary) * static_cast<double>(h.embedding);
  return layers / (2 * layers + 2 * head);
}

/// The work of all passes in tokens' worth. Decoding the weights costs a pass about what kDecodeRows tokens
/// do (docs/benchmarks.md, the kernels by rows).
double work(const LeverSetting& setting, const Workload& workload, double forward_share) {
  constexpr double kDecodeRows = 8;
  const engine::PassTotals totals = workload.totals(setting.micro_batch);
  const double whole = static_cast<double>(totals.rows) + kDecodeRows * static_cast<double>(totals.passes);
  const double repeated =
      static_cast<double>(totals.repeated_rows) + kDecodeRows * static_cast<double>(totals.repeated_passes);
  // Checkpointing computes all but the last segment again, without keys, values and each segment's last
  // product.
  constexpr double kRecomputed = 0.8;
  return whole + forward_share * (repeated + (setting.gradient_checkpointing ? kRecomputed * whole : 0));
}

using Changes = std::vector<std::pair<std::string, std::string>>;

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// "[training]", "[ training ]  # as it was".
bool opens_training(std::string_view line) {
  constexpr std::string_view kName = "training";
  line = trimmed(line);
  if (!line.starts_with('[')) return false;
  line = trimmed(line.substr(1));
  return line.starts_with(kName) && trimmed(line.substr(kName.size())).starts_with(']');
}

bool sets(std::string_view line, std::string_view key) {
  line = trimmed(line);
  return line.starts_with(key) && trimmed(line.substr(key.size())).starts_with('=');
}

// Knows the usual spelling alone; what came out is to be checked.
std::string edit_training(const std::string& toml, const Changes& changes) {
  std::vector<std::string> lines;
  std::istringstream in(toml);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  auto header = std::find_if(lines.begin(), lines.end(), opens_training);
  if (header == lines.end()) {
    lines.emplace_back("");
    header = lines.insert(lines.end(), "[training]");
  }
  const auto section = header - lines.begin();
  const std::string line_end = header->ends_with('\r') ? "\r" : "";
  auto next = section + 1;  // where a key goes that is not there yet
  for (const auto& change : changes) {
    const std::string& key = change.first;
    const std::string& value = change.second;
    const auto end = std::find_if(lines.begin() + section + 1, lines.end(),
                                  [](const std::string& line) { return trimmed(line).starts_with('['); });
    const auto at = std::find_if(lines.begin() + section + 1, end,
                                 [&](const std::string& line) { return sets(line, key); });
    std::string text = key;
    text.append(" = ").append(value);
    if (at == end) {
      lines.insert(lines.begin() + next++, text.append(line_end));
      continue;
    }
    const size_t comment = at->find('#');  // none of these keys' values has one
    *at = comment == std::string::npos ? text.append(line_end) : text.append("  ").append(*at, comment);
  }
  std::string out;
  for (const std::string& line : lines) out.append(line).append("\n");
  return out;
}

// In value; where they stand does not matter.
bool same(const TomlValue& a, const TomlValue& b) {
  if (a.kind != b.kind || a.boolean != b.boolean || a.integer != b.integer || a.string != b.string)
    return false;
  if (a.real != b.real && !(std::isnan(a.real) && std::isnan(b.real))) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(
             a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
             [](const TomlEntry& x, const TomlEntry& y) { return x.key == y.key && same(x.value, y.value); });
}

// The value at `key`, made where there is none.
TomlValue& entry(TomlValue& table, const std::string& key) {
  const auto at = std::find_if(table.entries.begin(), table.entries.end(),
                               [&](const TomlEntry& known) { return known.key >= key; });
  if (at != table.entries.end() && at->key == key) return at->value;
  return table.entries.insert(at, TomlEntry{key, {}, {}})->value;
}

TomlValue with_values(TomlValue root, const Changes& changes) {
  TomlValue& training = entry(root, "training");
  for (const auto& [key, value] : changes) {
    entry(training, key) = parse_toml("value = " + value, key).entries.front().value;
  }
  return root;
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
  if (chunked_cross_entropy != t.chunked_cross_entropy) keys.emplace_back("chunked_cross_entropy", "true");
  return keys;
}

std::vector<LeverSetting> lever_settings(const Document& document, const ModelContext& context,
                                         const Workload& workload, int64_t program_bytes) {
  constexpr int64_t kSmallestPass = 16;
  const TrainingSection& t = document.training;
  const model::AdapterLayout layout = adapter_layout(document, context);
  std::vector<LeverSetting> settings = {{t.micro_batch, t.gradient_accumulation, t.gradient_checkpointing,
                                         t.checkpoint_dtype, t.chunked_cross_entropy}};
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
  if (!next.chunked_cross_entropy) {
    next.chunked_cross_entropy = true;
    settings.push_back(next);
  }
  const double share = forward_share(context.model);
  const double own = work(settings.front(), workload, share);
  for (LeverSetting& setting : settings) {
    Document changed = document;
    apply(changed, setting);
    const auto plan = engine::plan_engine(context.model, &layout, engine_options(changed, workload));
    setting.bytes = plan_memory(context, plan, &layout, optimizer_options(document),
                                document.training.threads, program_bytes)
                        .total();
    setting.relative_time = work(setting, workload, share) / own;
  }
  return settings;
}

std::optional<LeverSetting> first_fit(const std::vector<LeverSetting>& settings, int64_t bytes) {
  const auto at =
      std::find_if(settings.begin(), settings.end(), [&](const LeverSetting& s) { return s.bytes <= bytes; });
  return at == settings.end() ? std::nullopt : std::optional(*at);
}

std::string with_training_keys(const std::string& toml, const std::string& file,
                               const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = edit_training(toml, changes);
  try {
    if (same(parse_toml(text, file), with_values(parse_toml(toml, file), changes))) return text;
  } catch (const Error&) {
    // A section or key that the edit did not recognize now stands there twice.
  }
  std::string keys;
  for (const auto& [key, value] : changes) {
    keys.append(keys.empty() ? "" : ", ").append(key).append(" = ").append(value);
  }
  fail(ErrorKind::config,
       "{}: [training] is not written as a plain section with plain keys, and nothing was changed; set by "
       "hand: {}",
       file, keys);
}

}  // namespace retro::run
