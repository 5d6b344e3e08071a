#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/memory_info.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/terminal_text.h"
#include "device/device.h"
#include "run/model_context.h"
#include "run/setup.h"

namespace retro::cli {

namespace {

struct TypeCount {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

// "attn_q" of "blk.3.attn_q.weight".
std::string projection(std::string_view name) {
  name.remove_prefix(std::min(name.size(), name.find('.', 4) + 1));
  return std::string(name.substr(0, name.rfind('.')));
}

nlohmann::ordered_json describe(const run::ModelContext& context, const std::string& fingerprint) {
  const model::Hyperparameters& h = context.model.hyperparameters();
  const text::Vocabulary& vocabulary = context.tokenizer.vocabulary();
  nlohmann::ordered_json json;
  json["path"] = context.model.file().path().string();
  json["name"] = context.model.file().get_string("general.name", "");
  json["architecture"] = context.model.architecture();
  json["fingerprint"] = fingerprint;
  json["layers"] = h.layers;
  json["embedding_length"] = h.embedding;
  json["feed_forward_length"] = h.feed_forward;
  json["heads"] = h.heads;
  json["kv_heads"] = h.kv_heads;
  json["head_dim"] = h.head_dim;
  json["context_length"] = h.context_length;
  json["sliding_window"] = h.window;
  json["tied_head"] = context.model.tied();
  json["vocabulary"] = vocabulary.size();
  json["tokenizer"] = context.model.file().get_string("tokenizer.ggml.model");
  json["pre_tokenizer"] = context.model.file().get_string("tokenizer.ggml.pre", "default");
  json["adds_bos"] = vocabulary.add_bos();
  for (const text::TokenId id : vocabulary.eog_ids()) json["end_of_answer"].push_back(vocabulary.text(id));
  json["chat_template"] = !context.chat ? "none"
                          : context.template_note().empty()
                              ? "in the file"
                              : fmt::format("published format of {}", context.model.architecture());
  json["template_declares_tools"] = context.chat && context.chat->declares_tools();
  return json;
}

void add_tensors(const run::ModelContext& context, nlohmann::ordered_json& json) {
  std::map<std::string, TypeCount> types;
  for (const gguf::Tensor& tensor : context.model.file().tensors()) {
    TypeCount& count = types[tensor::dtype_name(tensor.dtype)];
    ++count.tensors;
    count.bytes += static_cast<int64_t>(tensor.bytes);
  }
  for (const auto& [name, count] : types) {
    json["tensor_types"][name] = {{"tensors", count.tensors}, {"bytes", count.bytes}};
  }
  std::map<std::string, TypeCount> targets;
  for (const gguf::Tensor* tensor : context.model.block_matrices()) {
    TypeCount& count = targets[projection(tensor->name)];
    ++count.tensors;
    count.bytes += tensor->cols() + tensor->rows();
  }
  for (const auto& [name, count] : targets) {
    json["lora_targets"][name] = {{"tensors", count.tensors}, {"weights_per_rank", count.bytes}};
  }
}

// Names in the file are its maker's.
std::string text_of(const nlohmann::ordered_json& value) {
  return without_controls(value.is_string() ? value.get<std::string>() : value.dump());
}

void print(const nlohmann::ordered_json& json) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      fmt::print("{:24} {}\n", key, text_of(value));
      continue;
    }
    fmt::print("{}:\n", key);
    for (const auto& [name, entry] : value.items())
      fmt::print("  {:22} {}\n", without_controls(name), text_of(entry));
  }
}

}  // namespace

int run_inspect(const InspectArguments& arguments) {
  if (!arguments.common.model) fail(ErrorKind::config, "inspect needs --model FILE, as --model base.gguf");
  refuse_to_replace(arguments.json, {{"the model", *arguments.common.model}});
  ProgressReporter reporter;
  const run::ModelContext context(*arguments.common.model);
  nlohmann::ordered_json json = describe(context, run::fingerprint_model(context, reporter));
  add_tensors(context, json);
  const auto device = device::make_cpu_device(1);
  json["device"] = {{"name", device->name()},
                    {"threads", default_threads()},
                    {"available_memory_bytes", available_bytes()}};
  reporter.clear();
  if (prints_results(arguments.json)) print(json);
  write_json(arguments.json, json);
  return 0;
}

}  // namespace retro::cli
