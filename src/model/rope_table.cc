#include "model/rope_table.h"

#include "base/det_math.h"

namespace retro::model {

RopeTable make_rope_table(const RopeSettings& settings, int32_t dims, int32_t positions, int32_t context) {
  const int32_t half = dims / 2;
  RopeTable table{settings, {}};
  table.values.resize(static_cast<size_t>(positions) * static_cast<size_t>(dims));
  const bool is_long = settings.long_factors != nullptr && context > settings.original_context;
  const float* factors = is_long ? settings.long_factors : settings.factors;
  const double magnitude = settings.magnitude;
  const double log_base = det_log(static_cast<double>(settings.base));
  for (int32_t i = 0; i < half; ++i) {
    double frequency = static_cast<double>(settings.scale) * det_exp(-2.0 * i / dims * log_base);
    if (factors != nullptr) frequency /= static_cast<double>(factors[i]);
    for (int32_t p = 0; p < positions; ++p) {
      float* row = table.values.data() + static_cast<size_t>(p) * static_cast<size_t>(dims);
      row[i] = static_cast<float>(magnitude * det_cos(p * frequency));
      row[half + i] = static_cast<float>(magnitude * det_sin(p * frequency));
    }
  }
  return table;
}

}  // namespace retro::model
