#include "profile/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

namespace retro::profile {

namespace {

using Json = nlohmann::ordered_json;

Json of_work(const Work& work, const Machine& machine) {
  const double seconds = std::max(work.seconds, 1e-12);
  return {{"seconds", work.seconds},
          {"flops", work.operations / seconds},
          {"share_of_fma_peak", work.operations / seconds / machine.operations},
          {"bytes_per_second", work.bytes / seconds},
          {"share_of_read_bandwidth", work.bytes / seconds / machine.bandwidth}};
}

Json phases_of(const Watch& watch, double seconds) {
  Json phases = Json::array();
  double known = 0;
  for (size_t p = 0; p < kPhases; ++p) {
    known += watch.phase_seconds[p];
    phases.push_back(
        {{"phase", run::name_of(static_cast<run::Phase>(p))}, {"seconds", watch.phase_seconds[p]}});
  }
  const double start = std::accumulate(watch.milestones.begin(), watch.milestones.end(), 0.0,
                                       [](double sum, const Milestone& m) { return sum + m.seconds; });
  phases.push_back({{"phase", "start"}, {"seconds", start}});
  phases.push_back({{"phase", "other"}, {"seconds", std::max(0.0, seconds - known - start)}});
  for (Json& phase : phases) phase["share"] = phase["seconds"].get<double>() / seconds;
  return phases;
}

Json updates_of(const Watch& watch) {
  Json updates = Json::array();
  for (const Update& update : watch.updates) {
    Json one = {{"seconds", update.seconds}};
    for (const auto& [name, value] : update.metrics) one[name] = value;
    updates.push_back(std::move(one));
  }
  return updates;
}

std::string mib(double bytes) {
  return fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

std::string bar(double share) {
  const auto width = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * 40 + 0.5);
  return std::string(width, '#');
}

void print_work(const Json& work, const char* name, bool bandwidth) {
  if (work["seconds"] == 0.0) return;
  fmt::print("  {:<18}{:9.3f} s{:10.1f} GFLOP/s{:7.1f} % of the FMA peak", name,
             work["seconds"].get<double>(), work["flops"].get<double>() / 1e9,
             100 * work["share_of_fma_peak"].get<double>());
  if (bandwidth) {
    fmt::print("{:8.1f} GB/s{:7.1f} % of the read bandwidth", work["bytes_per_second"].get<double>() / 1e9,
               100 * work["share_of_read_bandwidth"].get<double>());
  }
  fmt::print("\n");
}

double value_or(const Json& object, const char* key) {
  return object.contains(key) ? object[key].get<double>() : 0;
}

}  // namespace

Json make_report(const run::Document& document, const Watch& watch, const Machine& machine, double seconds,
                 int64_t peak_resident) {
  const run::GrpoSection& grpo = document.grpo;
  Json report;
  report["workload"] = {{"document", document.path.string()},
                        {"model", document.model.path.string()},
                        {"device", "cpu"},
                        {"threads", machine.threads},
                        {"updates", grpo.updates},
                        {"prompts_per_update", grpo.prompts_per_update},
                        {"group_size", grpo.group_size},
                        {"epochs", grpo.grpo_epochs},
                        {"max_new_tokens", grpo.sampling.max_new_tokens},
                        {"micro_batch", document.training.micro_batch},
                        {"generation_concurrency", document.training.generation_concurrency},
                        {"kv_dtype", document.training.kv_dtype == run::CacheType::f16 ? "f16" : "f32"},
                        {"adapter_dtype", document.lora.dtype == run::AdapterType::f16 ? "f16" : "f32"}};
  report["machine"] = {{"fma_peak_flops", machine.operations}, {"read_bytes_per_second", machine.bandwidth}};
  report["seconds"] = seconds;
  for (const Milestone& m : watch.milestones)
    report["start"].push_back({{"what", m.name}, {"seconds", m.seconds}, {"resident_bytes", m.resident}});
  report["phases"] = phases_of(watch, seconds);
  report["optimizer"] = {{"forward", of_work(watch.forward, machine)},
                         {"backward", of_work(watch.backward, machine)},
                         {"update", of_work(watch.weights, machine)}};
  report["generation"] = {{"prefill", of_work(watch.prefill, machine)},
                          {"decode", of_work(watch.decode, machine)}};
  report["updates"] = updates_of(watch);
  const bool stepped = watch.backward.seconds > 0;
  report["signal"] = stepped;
  report["memory"] = {{"peak_rss_bytes", peak_resident},
                      {"device_peak_bytes", watch.peak_bytes},
                      {"device_peak_in_step_bytes", watch.step_peak_bytes}};
  for (const auto& [what, parts] : watch.parts) {
    for (const engine::MemoryPart& part : parts) report["memory"]["planned"][what][part.name] = part.bytes;
  }
  for (const auto& [what, bytes] : watch.peak_by_buffer) report["memory"]["buffers"][what] = bytes;
  const int64_t layers = document.training.checkpoint_every_n_layers;
  report["checkpoints"] = document.training.gradient_checkpointing
                              ? Json{{"every_layers", layers},
                                     {"bytes", report["memory"]["planned"]["step"].value(
                                                   "activations kept for the backward pass", int64_t{0})}}
                              : Json();
  report["gpu_duty_cycle_active"] = false;
  return report;
}

void print_report(const Json& report) {
  const Json& w = report["workload"];
  fmt::print(
      "{} on {}, {} threads: {} update(s) of {} prompts x {} answers of at most {} tokens, {} epoch(s)\n",
      w["model"].get<std::string>(), w["device"].get<std::string>(), w["threads"].get<int>(),
      w["updates"].get<int64_t>(), w["prompts_per_update"].get<int64_t>(), w["group_size"].get<int64_t>(),
      w["max_new_tokens"].get<int64_t>(), w["epochs"].get<int64_t>());
  fmt::print("micro_batch {}, generation_concurrency {}, K/V {}, adapter {}\n",
             w["micro_batch"].get<int64_t>(), w["generation_concurrency"].get<int64_t>(),
             w["kv_dtype"].get<std::string>(), w["adapter_dtype"].get<std::string>());
  fmt::print("machine: {:.0f} GFLOP/s, reads {:.1f} GB/s\n\nstart\n",
             report["machine"]["fma_peak_flops"].get<double>() / 1e9,
             report["machine"]["read_bytes_per_second"].get<double>() / 1e9);
  for (const Json& m : report["start"]) {
    fmt::print("  {:<18}{:9.3f} s{:>14}\n", m["what"].get<std::string>(), m["seconds"].get<double>(),
               mib(m["resident_bytes"].get<double>()));
  }
  fmt::print("\nphases of {:.3f} s\n", report["seconds"].get<double>());
  for (const Json& phase : report["phases"]) {
    fmt::print("  {:<18}{:9.3f} s{:7.1f} %  {}\n", phase["phase"].get<std::string>(),
               phase["seconds"].get<double>(), 100 * phase["share"].get<double>(),
               bar(phase["share"].get<double>()));
  }
  fmt::print("\noptimizer\n");
  print_work(report["optimizer"]["forward"], "forward", false);
  print_work(report["optimizer"]["backward"], "backward", false);
  fmt::print("  {:<18}{:9.3f} s\n", "update", report["optimizer"]["update"]["seconds"].get<double>());
  fmt::print("generation\n");
  print_work(report["generation"]["prefill"], "prefill", false);
  print_work(report["generation"]["decode"], "decode", true);
  fmt::print("\nupdates\n");
  int64_t number = 0;
  for (const Json& update : report["updates"]) {
    fmt::print("  {}: {:.2f} s, loss {:.4f}, reward {:.4f}, {:.0f} tok/s sampled;", ++number,
               update["seconds"].get<double>(), value_or(update, "policy/total_loss"),
               value_or(update, "reward/mean"), value_or(update, "generation/tokens_per_second"));
    for (size_t p = 0; p < kPhases; ++p) {
      const std::string name(run::name_of(static_cast<run::Phase>(p)));
      fmt::print(" {} {:.2f}", name, value_or(update, ("timing/" + name + "_seconds").c_str()));
    }
    fmt::print("\n");
  }
  if (!report["signal"].get<bool>()) {
    fmt::print(
        "  no group had signal (all rewards alike, or all answers cut), so that the optimizer phase is "
        "empty\n");
  }
  const Json& memory = report["memory"];
  fmt::print("\nmemory: peak {} resident, {} held by the device, {} in a step\n",
             mib(memory["peak_rss_bytes"].get<double>()), mib(memory["device_peak_bytes"].get<double>()),
             mib(memory["device_peak_in_step_bytes"].get<double>()));
  for (const auto& [what, parts] : memory["planned"].items()) {
    fmt::print("  {}\n", what);
    for (const auto& [name, bytes] : parts.items())
      fmt::print("    {:<46}{:>12}\n", name, mib(bytes.get<double>()));
  }
  fmt::print("  buffers, each at its largest\n");
  for (const auto& [what, bytes] : memory["buffers"].items())
    fmt::print("    {:<46}{:>12}\n", what, mib(bytes.get<double>()));
}

}  // namespace retro::profile
