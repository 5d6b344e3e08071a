// logits MODEL ADAPTER|- f32|f16: reads token ids from standard input and writes the logits after each of
// them, [ids, vocabulary] f32, to standard output; keys and values are kept in the type named.
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "model/adapter.h"
#include "model/model.h"

namespace {

using namespace retro;

void write_logits(const std::string& model_path, const std::string& adapter_path, const std::string& kv,
                  const std::vector<int32_t>& ids) {
  const model::Model model(model_path);
  std::optional<model::LoadedAdapter> adapter;
  if (adapter_path != "-") adapter = model::read_adapter(adapter_path, model);
  engine::EngineOptions options;
  options.train = false;
  options.micro_batch = 1;
  options.set_rows = static_cast<int32_t>(ids.size());
  options.head_chunk_rows = 1;
  options.kv_dtype = kv == "f16" ? tensor::DType::F16 : tensor::DType::F32;
  const auto device = device::make_cpu_device(2);
  engine::Engine engine(*device, adapter ? &adapter->adapter : nullptr,
                        engine::plan_engine(model, adapter ? &adapter->adapter.layout : nullptr, options));
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<const float> logits = engine.next_logits({&ids[i], 1}, static_cast<int32_t>(i));
    if (std::fwrite(logits.data(), sizeof(float), logits.size(), stdout) != logits.size())
      fail(ErrorKind::io, "cannot write the logits");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) fail(ErrorKind::config, "usage: logits MODEL ADAPTER|- f32|f16 < ids > logits");
    const std::vector<int32_t> ids{std::istream_iterator<int32_t>(std::cin), {}};
    if (ids.empty()) fail(ErrorKind::data, "no token ids on standard input");
    write_logits(argv[1], argv[2], argv[3], ids);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "logits: %s\n", error.what());
    return 1;
  }
}
