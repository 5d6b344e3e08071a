// Attention in double, by the formula: a list of seen keys for each row, no tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace retro::test {

struct AttentionShape {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 0;
  double scale = 1;
  double softcap = 0;  // 0: none
};

/// Keys are rows of the carry; seen[r] lists those that row r sees.
struct AttentionInput {
  AttentionShape shape;
  std::vector<double> q;  // [rows, heads·head_dim]
  std::vector<double> k;  // [carry rows, kv_heads·head_dim]
  std::vector<double> v;
  std::vector<std::vector<int64_t>> seen;
};

/// Values, and beside each the sum of the magnitudes it is made of, by which rounding is judged.
struct Sums {
  std::vector<double> value;
  std::vector<double> magnitude;
  explicit Sums(size_t n = 0) : value(n), magnitude(n) {}
  void add(size_t i, double term, double size) {
    value[i] += term;
    magnitude[i] += size;
  }
};

struct AttentionOutput {
  Sums out;  // [rows, heads·head_dim]
  Sums lse;  // [rows, heads]
};

AttentionOutput attention_ref(const AttentionInput& input);

struct AttentionGradients {
  Sums dq;
  Sums dk;
  Sums dv;
};

AttentionGradients attention_back_ref(const AttentionInput& input, const std::vector<double>& dout);

}  // namespace retro::test
