#include "tests/reference/attention_ref.h"

#include <algorithm>
#include <cmath>

namespace retro::test {
namespace {

// p over the keys that row r sees with head h, and the log-sum-exp of the scores.
struct Weights {
  std::vector<double> p;
  std::vector<double> slope;  // of the soft cap at each score
  std::vector<double> size;   // relative rounding of p grows with the magnitudes in its score
  double lse = 0;
  double coarsest = 0;  // the largest magnitude a score is made of
};

const double* head_of(const std::vector<double>& x, int64_t row, int width, int head, int head_dim) {
  return x.data() + row * width + static_cast<int64_t>(head) * head_dim;
}

Weights weights_of(const AttentionInput& in, int64_t r, int h) {
  const AttentionShape& s = in.shape;
  const double* q = head_of(in.q, r, s.heads * s.head_dim, h, s.head_dim);
  Weights w;
  std::vector<double> magnitudes;
  for (const int64_t key : in.seen[static_cast<size_t>(r)]) {
    const double* k = head_of(in.k, key, s.kv_heads * s.head_dim, h / (s.heads / s.kv_heads), s.head_dim);
    double score = 0;
    double magnitude = 0;
    for (int e = 0; e < s.head_dim; ++e) {
      score += q[e] * k[e];
      magnitude += std::abs(q[e] * k[e]);
    }
    const double capped =
        s.softcap > 0 ? s.softcap * std::tanh(s.scale * score / s.softcap) : s.scale * score;
    w.p.push_back(capped);
    w.slope.push_back(s.softcap > 0 ? 1 - (capped / s.softcap) * (capped / s.softcap) : 1);
    magnitudes.push_back(s.scale * magnitude + s.softcap);
  }
  const double top = *std::max_element(w.p.begin(), w.p.end());
  w.coarsest = *std::max_element(magnitudes.begin(), magnitudes.end());
  double sum = 0;
  for (const double score : w.p) sum += std::exp(score - top);
  w.lse = top + std::log(sum);
  for (double& p : w.p) {
    p = std::exp(p - w.lse);
    w.size.push_back(p * (1 + w.coarsest));
  }
  return w;
}

}  // namespace

AttentionOutput attention_ref(const AttentionInput& in) {
  const AttentionShape& s = in.shape;
  const size_t rows = in.seen.size();
  AttentionOutput result;
  result.out = Sums(in.q.size());
  result.lse = Sums(rows * static_cast<size_t>(s.heads));
  for (size_t r = 0; r < rows; ++r) {
    for (int h = 0; h < s.heads; ++h) {
      const Weights w = weights_of(in, static_cast<int64_t>(r), h);
      result.lse.add(r * static_cast<size_t>(s.heads) + static_cast<size_t>(h), w.lse, 1 + w.coarsest);
      const size_t to = r * static_cast<size_t>(s.heads * s.head_dim) + static_cast<size_t>(h * s.head_dim);
      for (size_t j = 0; j < w.p.size(); ++j) {
        const double* v =
            head_of(in.v, in.seen[r][j], s.kv_heads * s.head_dim, h / (s.heads / s.kv_heads), s.head_dim);
        for (int e = 0; e < s.head_dim; ++e) {
          result.out.add(to + static_cast<size_t>(e), w.p[j] * v[e], w.size[j] * std::abs(v[e]));
        }
      }
    }
  }
  return result;
}

AttentionGradients attention_back_ref(const AttentionInput& in, const std::vector<double>& dout) {
  const AttentionShape& s = in.shape;
  const auto head_dim = static_cast<size_t>(s.head_dim);
  AttentionGradients g{Sums(in.q.size()), Sums(in.k.size()), Sums(in.v.size())};
  for (size_t r = 0; r < in.seen.size(); ++r) {
    for (int h = 0; h < s.heads; ++h) {
      const Weights w = weights_of(in, static_cast<int64_t>(r), h);
      const size_t at = (r * static_cast<size_t>(s.heads) + static_cast<size_t>(h)) * head_dim;
      std::vector<double> dp(w.p.size());
      std::vector<double> dp_size(w.p.size());
      double delta = 0;
      double delta_size = 0;
      for (size_t j = 0; j < w.p.size(); ++j) {
        const size_t key =
            static_cast<size_t>(in.seen[r][j] * s.kv_heads + h / (s.heads / s.kv_heads)) * head_dim;
        for (size_t e = 0; e < head_dim; ++e) {
          dp[j] += dout[at + e] * in.v[key + e];
          dp_size[j] += std::abs(dout[at + e] * in.v[key + e]);
          g.dv.add(key + e, w.p[j] * dout[at + e], w.size[j] * std::abs(dout[at + e]));
        }
        delta += w.p[j] * dp[j];
        delta_size += w.size[j] * dp_size[j];
      }
      for (size_t j = 0; j < w.p.size(); ++j) {
        const size_t key =
            static_cast<size_t>(in.seen[r][j] * s.kv_heads + h / (s.heads / s.kv_heads)) * head_dim;
        const double ds = s.scale * w.slope[j] * w.p[j] * (dp[j] - delta);
        const double size = s.scale * w.size[j] * (dp_size[j] + delta_size);
        for (size_t e = 0; e < head_dim; ++e) {
          g.dq.add(at + e, ds * in.k[key + e], size * std::abs(in.k[key + e]));
          g.dk.add(key + e, ds * in.q[at + e], size * std::abs(in.q[at + e]));
        }
      }
    }
  }
  return g;
}

}  // namespace retro::test
