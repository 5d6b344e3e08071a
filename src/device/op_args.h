// One plain struct an operation: what a kernel reads and writes. Addresses are resolved once, when a graph is
// planned; what differs from pass to pass (rows, tokens, structure, queries) is in PassArgs.
//
// Matrices are row-major; a pass has R = PassArgs::rows rows, at most the rows that were planned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "tensor/dtype.h"

namespace retro::device {

using tensor::DType;

/// Rows of numbers in device memory. `data` is an address in the device's own space.
struct Matrix {
  void* data = nullptr;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from one row to the next
  DType dtype = DType::F32;

  float* f32() const { return static_cast<float*>(data); }
};

/// A weight as it lies in the file: `rows` rows (outputs) of `cols` elements (inputs), packed by dtype.
struct Weight {
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::F32;
};

/// 32 numbers of a row rounded to 8 bits: x ~ scale·values, scale = max|x| / 127, to nearest even. What a
/// product needs of their sums goes with them. A row is cols / 32 of these.
struct alignas(64) QuantizedGroup {
  static constexpr int64_t kSize = 32;
  int8_t values[kSize];     // -127 … 127
  float scale;              // NaN where a number is not finite; 0 where all are tiny
  float sum;                // scale·Σ values
  float half_sums[2];       // of values 0 … 15 and 16 … 31
  int32_t offset;           // -128·Σ values: what the products owe where weights are stored 128 higher
  int32_t half_offsets[2];  // of values 0 … 15 and 16 … 31
  int32_t unused;
};
static_assert(sizeof(QuantizedGroup) == 64);

/// Columns of the F32 matrix that holds rows of `cols` numbers as QuantizedGroups; cols is a multiple of 32.
constexpr int64_t quantized_columns(int64_t cols) {
  return cols / QuantizedGroup::kSize * static_cast<int64_t>(sizeof(QuantizedGroup) / sizeof(float));
}

/// A run of consecutive positions of one sequence. Its tokens see the keys of its ancestors and its own keys
/// up to themselves. Positions start at 0 in a root; a child starts where its parent ends.
///
/// Keys and values lie in a carry: the row of position p >= position_begin is carry_begin + p -
/// position_begin. A segment may have none of its rows in the pass (an ancestor whose keys are read only).
struct Segment {
  int32_t parent = -1;         // index into PassArgs::segments, smaller than its own; -1 for a root
  int32_t position_begin = 0;  // position of the segment's first token
  int32_t carry_begin = 0;     // carry row of the segment's first token
  int32_t row_begin = 0;       // its rows in this pass, [row_begin, row_end)
  int32_t row_end = 0;
  int32_t row_position = 0;  // position of the token in row_begin
  /// Its one row is the last of a sequence that is being sampled; with AttentionArgs::fast such rows have a
  /// kernel, and bits, of their own.
  bool decoded = false;
};

/// A request for the log-probability of `token` as the successor of row `row`.
struct Query {
  int32_t row = 0;
  int32_t token = 0;
};

/// How the token after a query's row is drawn: from softmax(z · inverse_temperature) over the smallest set of
/// the likeliest tokens with a mass of at least top_p (Holtzman et al. 2020), by one number in [0, 1).
struct Draw {
  float uniform = 0;
  float inverse_temperature = 0;  // 0: the likeliest token, the lowest id among equals
  float top_p = 1;
};

enum class HeadMode {
  score,     // log-probabilities only
  backward,  // log-probabilities, and the gradient for `dlogprobs`, which are known
  sample,    // draws a token for each query, and its log-probability at the draw's temperature
};

/// What differs between passes. All arrays are host memory and live until the pass has run.
struct PassArgs {
  int32_t rows = 0;
  std::span<const int32_t> tokens;      // [rows]
  std::span<const int32_t> positions;   // [rows] position in the own sequence
  std::span<const int32_t> carry_rows;  // [rows] where the row's key and value go
  std::span<const Segment> segments;    // roots before children; rows in ascending order, covering [0, rows)

  std::span<const Query> queries;    // sorted by row; several may name one row
  std::span<const float> dlogprobs;  // [queries] d loss / d logprob, in HeadMode::backward
  std::span<float> logprobs;         // [queries] out
  HeadMode head_mode = HeadMode::score;
  float inverse_temperature = 1;  // of log-probabilities and their gradient; logits are multiplied by it
  // In HeadMode::sample, where each query has a row of its own and its token is not read:
  std::span<const Draw> draws;  // [queries]
  std::span<int32_t> sampled;   // [queries] out; -1 where a logit is not finite (-infinity is a logit)
};

/// out[r] = scale · table[tokens[r]].
struct EmbedArgs {
  Weight table;
  Matrix out;
  float scale = 1;
};

/// Each row is `groups` vectors of w = cols / groups: y = x / sqrt(mean(x²) + eps) · weight[w].
struct RmsNormArgs {
  Matrix x;
  const float* weight = nullptr;
  Matrix y;
  int32_t groups = 1;
  float eps = 0;
};

/// With n = x·s, s = 1/sqrt(mean(x²) + eps), g = dy·weight: dx (+)= s · (g − n · mean(g·n)).
struct RmsNormBackArgs {
  Matrix x;
  const float* weight = nullptr;
  Matrix dy;
  Matrix dx;
  int32_t groups = 1;
  float eps = 0;
  bool accumulate = false;
};

/// A low-rank term. A is [rank, in]; B is kept transposed, [rank, out], so that every product with it runs as
/// it lies. Both have `dtype` (F32, or F16 where the adapter is stored so).
struct Lora {
  const void* a = nullptr;
  const void* bt = nullptr;
  DType dtype = DType::F32;
  int32_t rank = 0;  // 0: none
  float scale = 0;   // alpha / rank
};

/// y = x·Wᵀ, and with LoRA u = x·Aᵀ, y += (scale·u)·Bᵗ. u [R, rank] is kept for the backward pass, already
/// scaled. Every output is one chain of fused multiply-adds in the order of k, the base's before the
/// adapter's. Where y.data is null only u is made.
///
/// With `fast` the base's product is another: weights in blocks take x rounded to 8 bits, from x8
/// (QuantizeArgs), and each output is the chain over its groups of 32 or 16 weights
/// fma(Σ q·values, d·scale, ·), then fma(minimum, sum, ·) where the type has one; plain weights (F32, F16,
/// BF16) sum in 16 lanes along k. The adapter's term comes behind in either case. Still every output has the
/// same bits in any batch.
struct LinearArgs {
  Matrix x;
  Weight w;
  Matrix y;
  Lora lora;
  Matrix u;
  bool fast = false;
  Matrix x8 = {};  // no data where w has no blocks
};

/// out[r] = the rows of x as QuantizedGroups; out has quantized_columns(x.cols) columns.
struct QuantizeArgs {
  Matrix x;
  Matrix out;
};

/// dx (+)= dy·W. With LoRA: du = scale · dy·B (into `du`, [R, rank]), dx += du·A,
/// da [rank, in] += duᵀ·x, dbt [rank, out] += uᵀ·dy with u = scale·x·Aᵀ as LinearArgs left it.
/// Where dx.data is null no gradient of x is made. Sums over rows run in the order of the rows.
struct LinearBackArgs {
  Matrix dy;
  Weight w;
  Matrix dx;
  bool accumulate = false;
  Lora lora;
  Matrix x;
  Matrix u;
  Matrix du;
  float* da = nullptr;
  float* dbt = nullptr;
};

/// dw [cols of dy, cols of x] += dyᵀ·x, the gradient of a trained weight. Sums over rows run in the order of
/// the rows.
struct WeightGradArgs {
  Matrix dy;
  Matrix x;
  float* dw = nullptr;
};

enum class RopeStyle {
  interleaved,  // pairs (2i, 2i+1): llama files
  half,         // pairs (i, i + dims/2): NeoX, gemma
};

/// Rotates pairs of each head by the angle of the row's position. `cos_sin` holds, for each position, dims/2
/// cosines then dims/2 sines. `inverse` rotates back, which is the backward pass. x and y may be the same.
struct RopeArgs {
  Matrix x;
  Matrix y;
  const float* cos_sin = nullptr;
  int32_t heads = 1;
  int32_t head_dim = 0;
  int32_t dims = 0;  // rotated elements of a head, the first ones
  RopeStyle style = RopeStyle::interleaved;
  bool inverse = false;
};

/// Rounds the rows k and v to the carry's dtype (F16 or F32) and puts them at carry_rows.
struct KvStoreArgs {
  Matrix k;
  Matrix v;
  Matrix carry_k;
  Matrix carry_v;
};

/// out = softmax(cap(scale · q·Kᵀ)) · V over the keys a row sees (with a window, positions > p − window
/// only). cap(s) = softcap·tanh(s / softcap), or s where softcap is 0. lse [R, heads] is the log-sum-exp of
/// the scores. Heads h share the key head h / (heads / kv_heads). Key tiles are cut at fixed positions of the
/// sequence, so that a row's bits depend on its own sequence alone.
struct AttentionArgs {
  Matrix q;
  Matrix carry_k;
  Matrix carry_v;
  Matrix out;
  Matrix lse;
  int32_t heads = 1;
  int32_t kv_heads = 1;
  int32_t head_dim = 0;
  float scale = 1;
  int32_t window = 0;  // 0: none
  float softcap = 0;   // 0: none
  /// A row that is alone in its segment sums in another order, in lanes along its head's elements.
  bool fast = false;
};

/// The gradient of AttentionArgs by recomputation: dq is written; dk and dv [carry rows, kv_heads·head_dim]
/// f32, by carry row, are added to, own rows and earlier ones alike. Scratch: delta [R, heads],
/// sum(out·dout), and dscores [R, heads·kScoreColumns], the gradients of the scores of some tiles of keys.
struct AttentionBackArgs {
  AttentionArgs forward;
  Matrix dout;
  Matrix dq;
  Matrix dk;
  Matrix dv;
  Matrix delta;
  Matrix dscores;
  static constexpr int32_t kScoreColumns = 256;
};

/// dk[r], dv[r] = the carry's gradients at carry_rows[r] (the rounding's gradient is the identity).
struct KvLoadGradArgs {
  Matrix carry_dk;
  Matrix carry_dv;
  Matrix dk;
  Matrix dv;
};

enum class Activation { silu, gelu_tanh };

/// out = activation(gate) · up.
struct GatedArgs {
  Matrix gate;
  Matrix up;
  Matrix out;
  Activation activation = Activation::silu;
};

/// dgate = dout · up · activation'(gate), dup = dout · activation(gate). dgate may be gate and dup may be up.
struct GatedBackArgs {
  Matrix gate;
  Matrix up;
  Matrix dout;
  Matrix dgate;
  Matrix dup;
  Activation activation = Activation::silu;
};

/// out = a + b; out may be a or b. A b of stride 0 is one row that is added to each.
struct AddArgs {
  Matrix a;
  Matrix b;
  Matrix out;
};

/// parts[i] = consecutive columns of `whole`; with `join` the other way, which is the backward pass. Parts
/// without data end the list.
struct SplitArgs {
  static constexpr size_t kMost = 3;
  Matrix whole;
  std::array<Matrix, kMost> parts;
  bool join = false;
};

/// to = from, rounded to nearest even where the dtypes differ (F32, F16, BF16).
struct CopyArgs {
  Matrix from;
  Matrix to;
};

/// The first `rows` rows (0: the rows of the pass) become zero.
struct ZeroArgs {
  Matrix to;
  int64_t rows = 0;
};

/// The most rows of a head's chunk; more would be no faster.
constexpr int32_t kMaxHeadChunkRows = 1024;

/// logprob(row, token) = z[token] − logsumexp(z), z = cap(h[row]·Wᵀ) / temperature, cap as in AttentionArgs.
/// Rows that carry a query are gathered in chunks of `chunk_rows`, at most kMaxHeadChunkRows; logits
/// [chunk_rows, vocabulary] is all that is ever built of them. In HeadMode::backward dh[row] = Σ_q g_q ·
/// (W[token_q] − softmax(z)·W) / temperature over the row's queries, 0 for rows without. log-sum-exp runs
/// over fixed blocks of the vocabulary, so no bit depends on chunk_rows.
struct HeadArgs {
  Matrix h;
  Weight w;
  Matrix dh;
  Matrix gathered;   // [chunk_rows, in] scratch
  Matrix dgathered;  // [chunk_rows, in] scratch
  Matrix logits;     // [chunk_rows, vocabulary] scratch
  int32_t chunk_rows = 1;
  float softcap = 0;      // 0: none
  bool fast = false;      // the product of LinearArgs::fast, without HeadMode::backward
  Matrix gathered8 = {};  // [chunk_rows, quantized] scratch for it; no data where w has no blocks
};

using OpArgs =
    std::variant<EmbedArgs, RmsNormArgs, RmsNormBackArgs, LinearArgs, LinearBackArgs, WeightGradArgs,
                 RopeArgs, KvStoreArgs, AttentionArgs, AttentionBackArgs, KvLoadGradArgs, GatedArgs,
                 GatedBackArgs, AddArgs, SplitArgs, CopyArgs, ZeroArgs, HeadArgs, QuantizeArgs>;

}  // namespace retro::device
