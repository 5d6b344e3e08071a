#include "algo/rollout_metrics.h"

#include <algorithm>
#include <cmath>

namespace retro::algo {

namespace {

/// Count, mean, extremes and deviation of values that come one by one (Welford 1962).
struct Summary {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;
  double least = INFINITY;
  double most = -INFINITY;

  void add(double value) {
    ++count;
    const double before = value - mean;
    mean += before / static_cast<double>(count);
    squares += before * (value - mean);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  double deviation() const { return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count)); }
};

struct Groups {
  Summary deviations;
  int64_t without_spread = 0;

  void close(const Summary& group) {
    if (group.count == 0) return;
    deviations.add(group.deviation());
    without_spread += group.least == group.most ? 1 : 0;
  }
};

Groups summarize_groups(std::span<const SampledAnswer> answers) {
  Groups groups;
  Summary group;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i > 0 && answers[i].group != answers[i - 1].group) {
      groups.close(group);
      group = {};
    }
    group.add(answers[i].reward);
  }
  groups.close(group);
  return groups;
}

}  // namespace

std::vector<Metric> rollout_metrics(std::span<const SampledAnswer> answers, int64_t groups_wanted) {
  if (answers.empty()) return {};
  Summary reward, verifiable, judged, length, truncated, live, advantage;
  for (const SampledAnswer& one : answers) {
    reward.add(one.reward);
    verifiable.add(one.verifiable);
    if (one.judged) judged.add(*one.judged);
    length.add(static_cast<double>(one.tokens));
    truncated.add(one.truncated ? 1 : 0);
    live.add(one.live ? 1 : 0);
    if (one.live) advantage.add(std::abs(one.advantage));
  }
  std::vector<Metric> metrics;
  const auto put = [&](std::string_view name, double value) { metrics.emplace_back(name, value); };
  put("reward/mean", reward.mean);
  put("reward/min", reward.least);
  put("reward/max", reward.most);
  put("reward/std", reward.deviation());
  put("reward/verifiable_mean", verifiable.mean);
  if (judged.count > 0) put("reward/judge_mean", judged.mean);
  put("completions/length_mean", length.mean);
  put("completions/length_min", length.least);
  put("completions/length_max", length.most);
  put("completions/truncation_fraction", truncated.mean);
  put("batch/advantage_abs_mean", advantage.mean);
  put("batch/trained_fraction", live.mean);
  if (groups_wanted <= 0) return metrics;
  const Groups groups = summarize_groups(answers);
  const auto sampled = static_cast<double>(groups.deviations.count);
  put("reward/group_std", groups.deviations.mean);
  put("batch/zero_std_group_fraction", static_cast<double>(groups.without_spread) / sampled);
  put("batch/groups_sampled_fraction", sampled / static_cast<double>(groups_wanted));
  return metrics;
}

}  // namespace retro::algo
