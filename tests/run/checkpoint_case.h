// What the checkpoint tests save and compare.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "run/checkpoint.h"

namespace retro::run {

inline std::vector<float> any_bits(uint64_t seed, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = std::bit_cast<float>(static_cast<uint32_t>(splitmix64(seed * 1000 + i)));
  }
  return values;
}

/// A state whose bytes follow from `seed`; the adapter is a small text naming it.
struct SampleState {
  explicit SampleState(uint64_t at_step, uint64_t with_seed = 0)
      : step(at_step),
        seed(with_seed == 0 ? at_step : with_seed),
        weights(any_bits(seed, 700)),
        moments(any_bits(seed + 1, 1400)) {}

  std::string adapter() const { return fmt::format("adapter of {} {}", step, seed); }
  std::string state_json() const { return fmt::format("{{\"cursor\": {}, \"note\": \"ü\"}}", seed); }

  CheckpointContent content() const {
    CheckpointContent content;
    content.step = step;
    content.signature.fixed = {{"training.lr", "0.0001"}, {"sft.template", "\"{{ x }}\"\n"}};
    content.signature.said = {{"model.device", "cpu"}};
    content.state_json = state_json();
    content.buffers = {{"weights", weights}, {"adamw.m", moments}, {"nothing", {}}};
    content.write_adapter = [text = adapter()](const std::filesystem::path& path) { write_file(path, text); };
    return content;
  }

  uint64_t step;
  uint64_t seed;
  std::vector<float> weights, moments;
};

/// Whether `loaded` is of the sample's step and text.
inline bool holds(const LoadedCheckpoint& loaded, const SampleState& sample) {
  return loaded.step == sample.step && loaded.state_json == sample.state_json();
}

/// Fails the test unless `loaded` is `sample` bit for bit.
inline void expect_same(const LoadedCheckpoint& loaded, const SampleState& sample) {
  const CheckpointContent content = sample.content();
  EXPECT_EQ(loaded.step, content.step);
  EXPECT_EQ(loaded.signature.fixed, content.signature.fixed);
  EXPECT_EQ(loaded.signature.said, content.signature.said);
  EXPECT_EQ(loaded.state_json, content.state_json);
  ASSERT_EQ(loaded.buffers.size(), content.buffers.size());
  for (size_t i = 0; i < loaded.buffers.size(); ++i) {
    EXPECT_EQ(loaded.buffers[i].first, content.buffers[i].name);
    const auto& values = loaded.buffers[i].second;
    ASSERT_EQ(values.size(), content.buffers[i].values.size());
    EXPECT_TRUE(
        std::ranges::equal(std::as_bytes(std::span(values)), std::as_bytes(content.buffers[i].values)));
  }
}

/// Every file below a folder with its bytes, by relative path.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = std::filesystem::relative(entry.path(), folder).string();
    if (entry.is_regular_file()) files[name] = read_file(entry.path());
    if (entry.is_directory()) files[name] = "a folder";
  }
  return files;
}

/// Names in a folder, sorted, joined by spaces.
inline std::string names(const std::filesystem::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  std::string text;
  for (const std::string& name : found) text += (text.empty() ? "" : " ") + name;
  return text;
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The message of the exception that `action` throws; empty when it throws none.
template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace retro::run
