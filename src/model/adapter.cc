#include "model/adapter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "model/model.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace retro::model {

using tensor::DType;

Adapter make_adapter(AdapterLayout layout, uint64_t seed) {
  Adapter adapter{std::move(layout), {}};
  adapter.weights.assign(static_cast<size_t>(adapter.layout.size()), 0.0F);
  for (const LoraTarget& target : adapter.layout.targets) {
    const RandomStream stream(seed, target.name);
    const float bound = 1.0F / std::sqrt(static_cast<float>(target.in));
    float* a = adapter.weights.data() + target.a_offset;
    for (int64_t i = 0; i < target.rank * target.in; ++i) {
      a[i] = (2.0F * stream.uniform(static_cast<uint64_t>(i)) - 1.0F) * bound;
    }
  }
  return adapter;
}

namespace {

// to[c, r] = from[r, c]: B is kept [rank, out] and stored [out, rank].
std::vector<float> transposed(const float* from, int64_t rows, int64_t cols) {
  std::vector<float> to(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) to[static_cast<size_t>(c * rows + r)] = from[r * cols + c];
  }
  return to;
}

struct Factor {
  const gguf::Tensor* a = nullptr;
  const gguf::Tensor* b = nullptr;
};

std::vector<float> decode(const gguf::Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  tensor::dequantize_row(tensor.dtype, tensor.data, values.data(), tensor.elements());
  return values;
}

// Reads the file back tensor by tensor, so that no second adapter is ever in memory.
void compare_written(const std::filesystem::path& path, const Adapter& adapter) {
  const gguf::Reader file(path);
  const DType dtype = adapter.layout.dtype;
  const auto same = [&](const gguf::Tensor* tensor, std::span<const float> values) {
    if (tensor == nullptr || tensor->elements() != static_cast<int64_t>(values.size())) return false;
    const std::vector<float> found = decode(*tensor);
    return std::equal(values.begin(), values.end(), found.begin(), [&](float expected, float read) {
      const float stored = dtype == DType::F16 ? tensor::f16_to_f32(tensor::f32_to_f16(expected)) : expected;
      return std::bit_cast<uint32_t>(stored) == std::bit_cast<uint32_t>(read);
    });
  };
  for (const LoraTarget& target : adapter.layout.targets) {
    const std::span<const float> a(adapter.weights.data() + target.a_offset,
                                   static_cast<size_t>(target.rank * target.in));
    const bool ok = same(file.find_tensor(target.name + ".lora_a"), a) &&
                    same(file.find_tensor(target.name + ".lora_b"),
                         transposed(adapter.weights.data() + target.bt_offset, target.rank, target.out));
    if (!ok) {
      fail(ErrorKind::io,
           "{}: reads back different from what was written at '{}'; the disk or its driver is faulty",
           path.string(), target.name);
    }
  }
}

// Hands `values` to the sink in the stored dtype.
void emit(const gguf::Sink& sink, DType dtype, std::span<const float> values) {
  if (dtype == DType::F32) return sink(std::as_bytes(values));
  std::vector<uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), tensor::f32_to_f16);
  sink(std::as_bytes(std::span<const uint16_t>(halves)));
}

// The base tensors in file order with their factors; every tensor of the file is one of the two.
std::vector<std::pair<std::string, Factor>> pair_factors(const gguf::Reader& file) {
  std::vector<std::pair<std::string, Factor>> factors;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const bool a = tensor.name.ends_with(".lora_a");
    if (!a && !tensor.name.ends_with(".lora_b")) {
      fail(ErrorKind::model, "tensor {}: an adapter has only .lora_a and .lora_b tensors",
           gguf::quoted(tensor.name));
    }
    if (tensor.dtype != DType::F16 && tensor.dtype != DType::F32) {
      fail(ErrorKind::model, "tensor {}: is {}, must be F16 or F32", gguf::quoted(tensor.name),
           tensor::dtype_name(tensor.dtype));
    }
    const std::string name(tensor.name.substr(0, tensor.name.size() - 7));
    auto at = std::find_if(factors.begin(), factors.end(), [&](const auto& f) { return f.first == name; });
    if (at == factors.end()) at = factors.insert(at, {name, {}});
    (a ? at->second.a : at->second.b) = &tensor;
  }
  return factors;
}

void check_header(const gguf::Reader& file, const Model& model) {
  const std::string_view type = file.get_string("general.type", "model");
  if (type != "adapter") fail(ErrorKind::model, "is a GGUF of type {}, not an adapter", gguf::quoted(type));
  const std::string_view kind = file.get_string("adapter.type");
  if (kind != "lora") fail(ErrorKind::model, "key 'adapter.type': is {}, must be 'lora'", gguf::quoted(kind));
  const std::string_view architecture = file.get_string("general.architecture");
  if (architecture != model.architecture()) {
    fail(ErrorKind::model, "is an adapter of a {} model; the base is {}", gguf::quoted(architecture),
         model.architecture());
  }
}

void check_fit(const std::string& name, const Factor& factor, const Model& model) {
  const gguf::Tensor* base = model.file().find_tensor(name);
  if (base == nullptr || !name.starts_with("blk.") || base->rows() <= 1) {
    fail(ErrorKind::model, "tensor '{}.lora_a': the base has no 2-D block weight '{}'", name, name);
  }
  if (factor.a == nullptr || factor.b == nullptr) {
    fail(ErrorKind::model, "tensor '{}': lacks its .lora_{}", name, factor.a == nullptr ? "a" : "b");
  }
  const bool fits = factor.a->cols() == base->cols() && factor.b->rows() == base->rows() &&
                    factor.a->rows() == factor.b->cols() && factor.a->rows() < (1 << 20);
  if (!fits) {
    fail(ErrorKind::model, "tensor '{}': factors of shape {} and {} do not fit the base's {}", name,
         gguf::shape_text(*factor.a), gguf::shape_text(*factor.b), gguf::shape_text(*base));
  }
}

}  // namespace

void write_adapter(const std::filesystem::path& path, const Adapter& adapter, const Model& model,
                   const Provenance& provenance) {
  gguf::Writer writer;
  writer.add_string("general.type", "adapter");
  writer.add_string("general.architecture", model.architecture());
  writer.add_string("adapter.type", "lora");
  writer.add_f32("adapter.lora.alpha", adapter.layout.alpha);
  writer.add_string("retrograd.base_fingerprint", provenance.base_fingerprint);
  writer.add_string("retrograd.document_hash", provenance.document_hash);
  writer.add_u64("retrograd.seed", provenance.seed);
  writer.add_u64("retrograd.step", provenance.step);
  const DType dtype = adapter.layout.dtype;
  for (const LoraTarget& target : adapter.layout.targets) {
    const float* a = adapter.weights.data() + target.a_offset;
    const float* bt = adapter.weights.data() + target.bt_offset;
    writer.add_tensor(target.name + ".lora_a", {target.in, target.rank}, dtype, [=](const gguf::Sink& sink) {
      emit(sink, dtype, {a, static_cast<size_t>(target.rank * target.in)});
    });
    writer.add_tensor(target.name + ".lora_b", {target.rank, target.out}, dtype, [=](const gguf::Sink& sink) {
      emit(sink, dtype, transposed(bt, target.rank, target.out));
    });
  }
  writer.write(path);
  compare_written(path, adapter);
}

LoadedAdapter read_adapter(const std::filesystem::path& path, const Model& model) {
  const gguf::Reader file(path);
  try {
    check_header(file, model);
    LoadedAdapter loaded;
    AdapterLayout& layout = loaded.adapter.layout;
    layout.alpha = file.get_f32("adapter.lora.alpha");
    if (!std::isfinite(layout.alpha)) fail(ErrorKind::model, "key 'adapter.lora.alpha': is not finite");
    loaded.base_fingerprint = file.get_string("retrograd.base_fingerprint", "");
    layout.dtype = DType::F32;
    const auto factors = pair_factors(file);
    if (factors.empty()) fail(ErrorKind::model, "has no tensors");
    for (const auto& [name, factor] : factors) {
      check_fit(name, factor, model);
      layout.add(name, static_cast<int32_t>(factor.a->rows()), factor.a->cols(), factor.b->rows());
      if (factor.a->dtype == DType::F16) layout.dtype = DType::F16;
    }
    loaded.adapter.weights.reserve(static_cast<size_t>(layout.size()));
    loaded.zero = true;
    for (const auto& [name, factor] : factors) {
      const std::vector<float> a = decode(*factor.a);
      const std::vector<float> b = decode(*factor.b);
      const auto finite = [](float x) { return std::isfinite(x); };
      if (!std::all_of(a.begin(), a.end(), finite) || !std::all_of(b.begin(), b.end(), finite)) {
        fail(ErrorKind::model,
             "tensor '{}': its factors hold numbers that are not finite; the file is damaged", name);
      }
      loaded.zero = loaded.zero && std::all_of(b.begin(), b.end(), [](float x) { return x == 0; });
      const std::vector<float> bt = transposed(b.data(), factor.b->rows(), factor.b->cols());
      loaded.adapter.weights.insert(loaded.adapter.weights.end(), a.begin(), a.end());
      loaded.adapter.weights.insert(loaded.adapter.weights.end(), bt.begin(), bt.end());
    }
    return loaded;
  } catch (const Error& error) {
    throw std::string_view(error.what()).starts_with(path.string()) ? error : error.within(path.string());
  }
}

std::vector<std::string> describe_loading(const LoadedAdapter& loaded, const Model& model,
                                          const std::string& fingerprint) {
  const size_t count = loaded.adapter.layout.targets.size();
  std::vector<std::string> lines = {
      fmt::format("applied {} of {} adapter tensors to {} of the base's {} block matrices", count, count,
                  count, model.block_matrices().size())};
  if (!loaded.base_fingerprint.empty() && !fingerprint.empty() && loaded.base_fingerprint != fingerprint) {
    lines.push_back("warning: the adapter was trained on another base file (fingerprint " +
                    loaded.base_fingerprint + ", this base has " + fingerprint + ")");
  }
  if (loaded.zero) lines.emplace_back("warning: every B of the adapter is zero, so it changes nothing");
  return lines;
}

}  // namespace retro::model
