#include "run/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "run/faults.h"
#include "run/keys.h"
#include "run/nearest.h"
#include "run/rules.h"
#include "run/toml_file.h"

namespace retro::run {

namespace {

// The run document is small; a file far beyond that is another file, and is not read to say so.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

bool plain_text(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

nlohmann::json to_json(const TomlValue& value, std::string& fault) {
  switch (value.kind) {
    case TomlValue::Kind::boolean:
      return value.boolean;
    case TomlValue::Kind::integer:
      return value.integer;
    case TomlValue::Kind::real:
      if (!std::isfinite(value.real)) fault = "holds a number that is not finite";
      return value.real;
    case TomlValue::Kind::string:
      return value.string;
    case TomlValue::Kind::array: {
      nlohmann::json list = nlohmann::json::array();
      for (const TomlValue& item : value.items) list.push_back(to_json(item, fault));
      return list;
    }
    case TomlValue::Kind::table: {
      nlohmann::json object = nlohmann::json::object();
      for (const TomlEntry& entry : value.entries) object[entry.key] = to_json(entry.value, fault);
      return object;
    }
    case TomlValue::Kind::date:
      fault = "holds a date; write it as a string in quotes";
      return nullptr;
  }
  return nullptr;
}

class Loader {
 public:
  Loader(const std::filesystem::path& path, const Overrides& overrides)
      : overrides_(overrides), folder_(path.parent_path()), faults_(path.string()) {
    document_.path = path;
  }

  Document load(const TomlValue& root) {
    read_algorithm(root);
    for (const TomlEntry& entry : root.entries) read_top(entry);
    resolve_paths();
    apply_rules(document_, overrides_, faults_);
    faults_.throw_if_any();
    return std::move(document_);
  }

 private:
  void read_algorithm(const TomlValue& root);
  void read_top(const TomlEntry& entry);
  void read_section(std::string_view name, const TomlEntry& entry);
  void read_key(const Key& key, const TomlEntry& entry);
  std::string check(const Key& key, const TomlValue& value, KeyValue& checked);
  std::string check_choice(const Key& key, const TomlValue& value, KeyValue& checked);
  std::string check_names(const TomlValue& value, KeyValue& checked);
  static bool check_command(const TomlValue& value, KeyValue& checked);
  std::string check_object(const TomlValue& value, KeyValue& checked);
  void resolve(std::filesystem::path& path) const {
    if (!path.empty()) path = folder_ / path;
  }
  void resolve(std::optional<std::filesystem::path>& path) const {
    if (path) resolve(*path);
  }
  void resolve_paths();

  const Overrides& overrides_;
  std::filesystem::path folder_;
  Document document_;
  Faults faults_;
};

const TomlEntry* find(const TomlValue& table, std::string_view name) {
  for (const TomlEntry& entry : table.entries) {
    if (entry.key == name) return &entry;
  }
  return nullptr;
}

// What applies depends on the algorithm, so a document of another one gets this one error and no noise.
void Loader::read_algorithm(const TomlValue& root) {
  const TomlEntry* section = find(root, "run");
  const TomlEntry* entry = section != nullptr ? find(section->value, "algorithm") : nullptr;
  if (entry == nullptr) {
    faults_.add(section != nullptr ? section->at : Position{},
                "[run].algorithm is required, as algorithm = \"sft\"");
    if (find(root, "sft") == nullptr) faults_.throw_if_any();
    return;
  }
  for (const Key& key : keys()) {
    if (key.section != "run" || key.name != "algorithm") continue;
    read_key(key, *entry);
    faults_.throw_if_any();
  }
}

void Loader::read_top(const TomlEntry& entry) {
  if (entry.key == "optimizer" && entry.value.kind == TomlValue::Kind::table) {
    for (const TomlEntry& table : entry.value.entries) read_section("optimizer." + table.key, table);
    return;
  }
  read_section(entry.key, entry);
}

void Loader::read_section(std::string_view name, const TomlEntry& entry) {
  std::vector<std::string_view> names;
  const Section* section = nullptr;
  for (const Section& known : sections()) {
    if (refusal_for(known, document_.run.algorithm).empty()) names.push_back(known.name);
    if (known.name == name) section = &known;
  }
  if (section == nullptr) {
    const bool table = entry.value.kind == TomlValue::Kind::table;
    const std::string hint =
        table ? fmt::format("did you mean [{}]?", nearest(name, names)) : suggestion("run", name);
    faults_.add(entry.at, fmt::format("there is no {} '{}'; {}",
                                      table ? "section" : "key outside the sections,", name, hint));
    return;
  }
  if (const std::string refusal = refusal_for(*section, document_.run.algorithm); !refusal.empty()) {
    faults_.add(entry.at, fmt::format("[{}] {}", name, refusal));
    return;
  }
  if (entry.value.kind != TomlValue::Kind::table) {
    faults_.add_key(
        name, entry.at,
        fmt::format("'{}' is {}; it is a section, as [{}]", name, kind_name(entry.value.kind), name));
    return;
  }
  document_.positions.emplace(name, entry.at);
  if (section->open != nullptr) section->open(document_);
  for (const TomlEntry& child : entry.value.entries) {
    const std::string nested = fmt::format("{}.{}", name, child.key);
    if (std::any_of(sections().begin(), sections().end(),
                    [&](const Section& known) { return known.name == nested; })) {
      read_section(nested, child);
      continue;
    }
    const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& known) {
      return known.section == name && known.name == child.key;
    });
    if (key != keys().end()) {
      read_key(*key, child);
    } else {
      faults_.add(child.at, fmt::format("[{}] has no key {}; {}", name, quote(child.key).substr(0, 80),
                                        suggestion(name, child.key)));
    }
  }
}

void Loader::read_key(const Key& key, const TomlEntry& entry) {
  const std::string name = fmt::format("{}.{}", key.section, key.name);
  const std::string shown = fmt::format("[{}].{} = {}", key.section, key.name, spell(entry.value));
  constexpr std::string_view kRolloutOnly =
      "is for runs that sample answers (ppo, grpo, agent_grpo, distill); an sft run does not read it. Remove "
      "it";
  const std::string_view refusal = key.rollout_only && !document_.rolls_out() ? kRolloutOnly : key.refusal;
  if (!refusal.empty()) {
    faults_.add_key(name, entry.at, fmt::format("{}: {}", shown, refusal));
    return;
  }
  KeyValue checked;
  const std::string fault = check(key, entry.value, checked);
  if (!fault.empty()) {
    faults_.add_key(name, entry.at, fmt::format("{}: {}", shown, fault));
    return;
  }
  key.store(document_, checked);
  document_.positions.emplace(name, entry.at);
}

/// Empty when the value passes and `checked` holds it, else what to say.
std::string Loader::check(const Key& key, const TomlValue& value, KeyValue& checked) {
  using Kind = TomlValue::Kind;
  const auto rule = [&] {
    return fmt::format("must be {}, as {} = {}", rule_text(key), key.name, key.example);
  };
  const auto pass = [&](bool passes) { return passes ? std::string() : rule(); };
  checked.boolean = value.boolean;
  checked.integer = value.integer;
  checked.text = value.string;
  switch (key.kind) {
    case KeyKind::boolean:
      return pass(value.kind == Kind::boolean);
    case KeyKind::integer:
      if (const auto word = std::find(key.choices.begin(), key.choices.end(), value.string);
          value.kind == Kind::string && word != key.choices.end()) {
        checked.integer = key.choices.begin() - word;
        return {};
      }
      return pass(value.kind == Kind::integer && key.bounds.hold(static_cast<double>(value.integer)));
    case KeyKind::real:
      checked.real = value.kind == Kind::integer ? static_cast<double>(value.integer) : value.real;
      return pass((value.kind == Kind::real || value.kind == Kind::integer) && std::isfinite(checked.real) &&
                  key.bounds.hold(checked.real));
    case KeyKind::path:
      if (value.kind == Kind::string && value.string.starts_with("~/"))
        return "'~' is not expanded; write the whole path, as /home/me" + value.string.substr(1);
      return pass(value.kind == Kind::string && plain_text(value.string));
    case KeyKind::choice:
      return check_choice(key, value, checked);
    case KeyKind::names:
      return pass(check_names(value, checked).empty());
    case KeyKind::command:
      return pass(check_command(value, checked));
    case KeyKind::object:
      return value.kind == Kind::table ? check_object(value, checked) : rule();
  }
  return {};
}

std::string Loader::check_choice(const Key& key, const TomlValue& value, KeyValue& checked) {
  if (value.kind == TomlValue::Kind::string) {
    const auto found = std::find(key.choices.begin(), key.choices.end(), value.string);
    if (found != key.choices.end()) {
      checked.choice = static_cast<size_t>(found - key.choices.begin());
      return {};
    }
    if (std::find(key.later.begin(), key.later.end(), value.string) != key.later.end()) {
      return fmt::format("this build does not have it yet; it has {}, as {} = {}", listed(key.choices),
                         key.name, key.example);
    }
    return fmt::format("must be {}, as {} = \"{}\"", rule_text(key), key.name,
                       nearest(value.string, key.choices));
  }
  return fmt::format("must be {}, as {} = {}", rule_text(key), key.name, key.example);
}

std::string Loader::check_names(const TomlValue& value, KeyValue& checked) {
  if (value.kind != TomlValue::Kind::array) return "not a list";
  std::set<std::string> seen;
  for (const TomlValue& item : value.items) {
    if (item.kind != TomlValue::Kind::string || !plain_text(item.string)) return "not a name";
    if (!seen.insert(item.string).second) return "twice";
    checked.names.push_back(item.string);
  }
  return {};
}

bool Loader::check_command(const TomlValue& value, KeyValue& checked) {
  if (value.kind != TomlValue::Kind::array || value.items.empty()) return false;
  for (const TomlValue& item : value.items) {
    // An argument may be anything that a process can be given; the program has a name.
    if (item.kind != TomlValue::Kind::string || item.string.find('\0') != std::string::npos) return false;
    checked.names.push_back(item.string);
  }
  return !checked.names.front().empty();
}

std::string Loader::check_object(const TomlValue& value, KeyValue& checked) {
  constexpr std::string_view kReserved[] = {"messages", "tools", "bos_token", "eos_token",
                                            "add_generation_prompt"};
  for (const std::string_view name : kReserved) {
    if (find(value, name) != nullptr)
      return fmt::format("'{}' is set by the program itself. Remove it", name);
  }
  std::string fault;
  checked.text = to_json(value, fault).dump();
  return fault;
}

void Loader::resolve_paths() {
  resolve(document_.model.path);
  resolve(document_.output.path);
  resolve(document_.lora.init_adapter);
  resolve(document_.sft.data);
  resolve(document_.metrics.jsonl);
  resolve(document_.ppo.prompts);
  resolve(document_.grpo.prompts);
  if (document_.observe) resolve(document_.observe->directory);
  if (document_.reference) resolve(document_.reference->model);
  if (document_.evaluation) resolve(document_.evaluation->data);
  if (document_.checkpoint) {
    resolve(document_.checkpoint->directory);
    resolve(document_.checkpoint->resume_from);
  }
  if (overrides_.model) {
    document_.model.path = *overrides_.model;
    document_.positions.erase("model.path");
  }
}

}  // namespace

const RolloutSection& Document::rollout() const {
  RETRO_CHECK(rolls_out());
  if (run.algorithm == Algorithm::ppo) return ppo;
  return grpo;
}

int64_t Document::answers_per_update() const {
  return run.algorithm == Algorithm::ppo ? ppo.rollout_batch_size : grpo.prompts_per_update * grpo.group_size;
}

int64_t Document::nominal_steps() const {
  return run.algorithm == Algorithm::ppo ? ppo.updates * ppo.rollout_batch_size * ppo.ppo_epochs
                                         : grpo.updates * grpo.prompts_per_update * grpo.grpo_epochs;
}

void require_sft(const Document& document) {
  if (!document.rolls_out()) return;
  fail(ErrorKind::config,
       "{} = \"{}\": this build reads such documents, but does not run them yet; it runs \"sft\", as "
       "algorithm = \"sft\"",
       place(document, "run.algorithm"), algorithm_name(document.run.algorithm));
}

Document parse_document(std::string_view text, const std::filesystem::path& path,
                        const Overrides& overrides) {
  return Loader(path, overrides).load(parse_toml(text, path.string()));
}

Document load_document(const std::filesystem::path& path, const Overrides& overrides) {
  try {
    return parse_document(read_file(path, kMostBytes), path, overrides);
  } catch (const Error& error) {
    // A document that cannot be read is a mistake in the command, not a failure of the run.
    if (error.kind() != ErrorKind::io) throw;
    throw Error(ErrorKind::config, error.what());
  }
}

std::string place(const Document& document, std::string_view key) {
  const auto found = document.positions.find(key);
  const size_t dot = key.rfind('.');
  return fmt::format(
      "{}: [{}].{}",
      format_place(document.path.string(), found == document.positions.end() ? Position{} : found->second),
      key.substr(0, dot), key.substr(dot + 1));
}

}  // namespace retro::run
