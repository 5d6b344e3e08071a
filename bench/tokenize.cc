#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "bench/commands.h"
#include "bench/peak.h"
#include "gguf/reader.h"
#include "model/vocabulary.h"

namespace retro::bench {

namespace {

/// Seconds of the fastest of `times` calls.
template <typename Call>
double fastest(int times, const Call& call) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) {
    const double start = wall_seconds();
    call();
    best = std::min(best, wall_seconds() - start);
  }
  return best;
}

}  // namespace

nlohmann::ordered_json run_tokenize(const TokenizeBench& o) {
  const gguf::Reader file(o.model);
  const std::string text = read_file(o.text);
  if (text.empty())
    fail(ErrorKind::data, "{} is empty; a text of some megabytes gives a figure", o.text.string());
  const double load = fastest(o.rounds, [&] { (void)model::make_tokenizer(file); });
  const auto tokenizer = model::make_tokenizer(file);
  std::vector<text::TokenId> tokens;
  const double cold = fastest(1, [&] { tokens = tokenizer.encode(text, false); });
  const double warm = fastest(o.rounds, [&] { tokens = tokenizer.encode(text, false); });
  std::string back;
  const double decode = fastest(o.rounds, [&] { back = tokenizer.decode(tokens); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print(
      "{} tokens loaded in {:.3f} s; {:.1f} MB of text, {} tokens: encode {:.1f} MB/s (first {:.1f}), decode "
      "{:.1f} MB/s, {}\n",
      tokenizer.size(), load, megabytes, tokens.size(), megabytes / warm, megabytes / cold,
      megabytes / decode, back == text ? "back unchanged" : "not the same when decoded");
  return {{"vocabulary", tokenizer.size()},
          {"load_seconds", load},
          {"tokens", tokens.size()},
          {"encode_mb_per_second", megabytes / warm},
          {"first_encode_mb_per_second", megabytes / cold},
          {"decode_mb_per_second", megabytes / decode},
          {"round_trip", back == text}};
}

}  // namespace retro::bench
