#include "model/model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 3> kGlobalTensors = {"token_embd.weight", "output_norm.weight",
                                                            "output.weight"};

const Architecture& find_architecture(const gguf::Reader& file) {
  const std::string_view type = file.get_string("general.type", "model");
  if (type != "model") {
    fail(ErrorKind::model, "is a GGUF of type {}, not a model; name the base model's file",
         gguf::quoted(type));
  }
  const std::string_view name = file.get_string("general.architecture");
  std::string known;
  for (const Architecture* architecture : architectures()) {
    if (architecture->name == name) return *architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture->name);
  }
  fail(ErrorKind::model, "architecture {} is not available in this build; it knows {}", gguf::quoted(name),
       known);
}

// "blk.12.attn_q.weight" → 12 and "attn_q.weight".
std::optional<std::pair<int32_t, std::string_view>> split_block_name(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  int32_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.' || layer < 0)
    return std::nullopt;
  return std::pair{layer, name.substr(static_cast<size_t>(end - name.data()) + 1)};
}

}  // namespace

int64_t ModelGraph::table_bytes() const {
  return std::accumulate(tables.begin(), tables.end(), int64_t{0}, [](int64_t sum, const auto& table) {
    return sum + static_cast<int64_t>(table->values.size() * sizeof(float));
  });
}

Model::Model(const std::filesystem::path& path) : file_(path) {
  try {
    architecture_ = &find_architecture(file_);
    hyper_ = architecture_->read(file_);
    check_tensors();
  } catch (const Error& error) {
    throw std::string_view(error.what()).starts_with(path.string()) ? error : error.within(path.string());
  }
}

std::string_view Model::architecture() const {
  return architecture_->name;
}

void Model::check_tensors() const {
  for (const gguf::Tensor& tensor : file_.tensors()) {
    const auto block = split_block_name(tensor.name);
    const auto known = [&](std::span<const std::string_view> names, std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool ok =
        block ? block->first < hyper_.layers && known(architecture_->block_tensors, block->second)
              : known(kGlobalTensors, tensor.name) || known(architecture_->other_tensors, tensor.name);
    if (!ok) {
      fail(ErrorKind::model,
           "tensor {}: not part of a {} model as this build knows it, so the file would be computed wrongly",
           gguf::quoted(tensor.name), architecture_->name);
    }
    if (!tensor::dtype_info(tensor.dtype).decodable) {
      fail(ErrorKind::model, "tensor {}: type {} is not available in this build; it knows {}",
           gguf::quoted(tensor.name), tensor::dtype_name(tensor.dtype), tensor::decodable_names());
    }
  }
  (void)build_graph(nullptr, 1, 1);
}

ModelGraph Model::build_graph(const AdapterLayout* adapter, int32_t positions, int32_t context) const {
  ModelGraph result;
  graph::Builder builder([&](const std::string& name) {
    const LoraTarget* target = adapter == nullptr ? nullptr : adapter->find(name);
    return target == nullptr ? 0 : target->rank;
  });
  const RopeOf rope_of = [&](const RopeSettings& settings) -> const float* {
    for (const auto& table : result.tables) {
      if (table->settings == settings) return table->values.data();
    }
    result.tables.push_back(
        std::make_unique<RopeTable>(make_rope_table(settings, hyper_.rope_dims, positions, context)));
    return result.tables.back()->values.data();
  };
  result.graph = build_decoder(builder, *this, rope_of, *architecture_);
  return result;
}

std::vector<const gguf::Tensor*> Model::block_matrices() const {
  std::vector<const gguf::Tensor*> matrices;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (tensor.name.starts_with("blk.") && tensor.rows() > 1) matrices.push_back(&tensor);
  }
  return matrices;
}

graph::NamedWeight Model::matrix(const std::string& name, int64_t rows, int64_t cols) const {
  const gguf::Tensor& tensor = file_.tensor(name);
  if (tensor.dims != std::array<int64_t, 4>{cols, rows, 1, 1}) {
    fail(ErrorKind::model, "tensor '{}': its shape is {}, the metadata asks for [{}, {}]", name,
         gguf::shape_text(tensor), cols, rows);
  }
  return {name, {tensor.data, rows, cols, tensor.dtype}};
}

const float* Model::vector(const std::string& name, int64_t size) const {
  const gguf::Tensor& tensor = file_.tensor(name);
  if (tensor.dtype != tensor::DType::F32 || tensor.dims != std::array<int64_t, 4>{size, 1, 1, 1}) {
    fail(ErrorKind::model, "tensor '{}': is {} {}, must be F32 [{}]", name, tensor::dtype_name(tensor.dtype),
         gguf::shape_text(tensor), size);
  }
  return reinterpret_cast<const float*>(tensor.data);
}

}  // namespace retro::model
