// How a run is watched from outside: what `profile` measures with.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"
#include "engine/engine.h"

namespace retro::run {

/// Phases of an update.
enum class Phase { generation, behavior_scoring, reward, reference, optimizer };

constexpr std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"generation", "behavior_scoring", "reward", "reference",
                                         "optimizer"};
  return kNames[static_cast<size_t>(phase)];
}

/// Called by the run, in its thread. Does nothing by itself.
class Probe {
 public:
  virtual ~Probe() = default;

  /// The device that the run is to use in place of `device`.
  virtual std::unique_ptr<device::Device> wrap(std::unique_ptr<device::Device> device) { return device; }
  /// Something of the start is done: "model", "data", "adapter".
  virtual void milestone(std::string_view) {}
  /// What an engine that was made takes.
  virtual void planned(std::string_view, std::span<const engine::MemoryPart>) {}
  virtual void begin(Phase) {}
  virtual void end(Phase, double) {}
  /// An update is done: its metrics, and its seconds in all.
  virtual void updated(const std::map<std::string, double>&, double) {}
};

}  // namespace retro::run
