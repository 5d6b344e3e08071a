// retrograd-bench: what the machine can do, and what share of it this program gets.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "bench/commands.h"
#include "bench/peak.h"

namespace {

using namespace retro;

void add_model(CLI::App& app, std::filesystem::path& model, int& threads) {
  app.add_option("--model", model, "base GGUF")->required()->check(CLI::ExistingFile);
  app.add_option("--threads", threads, "threads; one a core by default")->check(CLI::Range(1, 1024));
}

int write_json(const nlohmann::ordered_json& json, const std::string& file) {
  if (file.empty()) return 0;
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  return out.flush() ? 0 : 1;
}

int write(nlohmann::ordered_json json, int threads, const std::string& file) {
  json["threads"] = threads;
  json["fma_peak_gflops"] = bench::fma_peak_of(threads, 0.2) / 1e9;
  json["read_gb_per_second"] = bench::read_bandwidth(threads, 0.5) / 1e9;
  fmt::print("machine, {} threads: {:.0f} GFLOP/s, reads {:.1f} GB/s\n", threads,
             json["fma_peak_gflops"].get<double>(), json["read_gb_per_second"].get<double>());
  return write_json(json, file);
}

int run(int argc, char** argv) {
  CLI::App app("Benchmarks of retrograd.", "retrograd-bench");
  app.require_subcommand(1);
  app.footer("Example:\n  retrograd-bench train --model base.gguf --ctx 512 --micro-batch 512");
  std::string filter, target, json;

  CLI::App* kernels = app.add_subcommand("kernels", "matrix kernels, one thread, shapes of real models");
  kernels->add_option("--filter", filter, "a part of \"model format direction\", as \"gemma Q6_K back\"");
  kernels->add_option("--target", target, "an instruction set, as AVX2");
  kernels->add_option("--json", json, "also write the figures to this file");

  bench::TrainBench train;
  train.threads = default_threads();
  CLI::App* step = app.add_subcommand("train", "whole LoRA steps");
  add_model(*step, train.model, train.threads);
  step->add_option("--ctx", train.ctx, "tokens of the sequence")->check(CLI::Range(2, 1 << 20));
  step->add_option("--micro-batch", train.micro_batch, "tokens of a pass")->check(CLI::Range(1, 1 << 20));
  step->add_option("--rank", train.rank, "of the adapter")->check(CLI::Range(1, 4096));
  step->add_option("--steps", train.steps, "timed steps")->check(CLI::Range(1, 100000));
  step->add_option("--checkpoint-layers", train.checkpoint_layers,
                   "stride of gradient checkpointing; 0: none")
      ->check(CLI::Range(0, 4096));
  step->add_option("--checkpoint-dtype", train.checkpoint_dtype)
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  step->add_option("--kv-dtype", train.kv_dtype)->check(CLI::IsMember({"f16", "f32"}));
  step->add_flag("--whole-logits", train.whole_logits,
                 "the logits of a pass at once, not in chunks of 64 rows");
  step->add_flag("--by-operation", train.by_operation, "where the time goes");
  step->add_option("--json", json, "also write the figures to this file");

  bench::GenerateBench generate;
  bool fast = true;
  generate.threads = default_threads();
  CLI::App* decode = app.add_subcommand("generate", "prefill and decoding");
  add_model(*decode, generate.model, generate.threads);
  decode->add_option("--prompt-tokens", generate.prompt_tokens)->check(CLI::Range(1, 1 << 20));
  decode->add_option("--new-tokens", generate.new_tokens)->check(CLI::Range(1, 1 << 20));
  decode->add_option("--sequences", generate.sequences, "how many at once, as 1,16")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  decode->add_flag("--fast,!--exact", fast,
                   "activations in 8 bits (the default), or the training forward's own bits");
  decode
      ->add_option("--adapter-rank", generate.adapter_rank,
                   "of a random adapter of all linear layers; 0: none")
      ->check(CLI::Range(0, 4096));
  decode->add_flag("--by-operation", generate.by_operation, "where the time of decoding goes");
  decode->add_option("--json", json, "also write the figures to this file");

  bench::TokenizeBench tokenize;
  CLI::App* tokens =
      app.add_subcommand("tokenize", "loading a vocabulary, text to tokens and back, one core");
  tokens->add_option("--model", tokenize.model, "a GGUF with a vocabulary")
      ->required()
      ->check(CLI::ExistingFile);
  tokens->add_option("--text", tokenize.text, "a text of some megabytes")
      ->required()
      ->check(CLI::ExistingFile);
  tokens->add_option("--rounds", tokenize.rounds, "the fastest counts")->check(CLI::Range(1, 1000));
  tokens->add_option("--json", json, "also write the figures to this file");

  CLI11_PARSE(app, argc, argv);
  if (kernels->parsed()) return write(bench::run_kernels(filter, target), 1, json);
  if (tokens->parsed()) return write(bench::run_tokenize(tokenize), 1, json);
  if (step->parsed()) return write(bench::run_train(train), train.threads, json);
  generate.exact = !fast;
  return write(bench::run_generate(generate), generate.threads, json);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "retrograd-bench: {}\n", error.what());
    return 1;
  }
}
