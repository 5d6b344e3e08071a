// What `profile` measures of a run: phases, operations, memory.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/probe.h"

namespace retro::profile {

constexpr size_t kPhases = 5;

/// Work of a kind: seconds, and floating-point operations or bytes.
struct Work {
  double seconds = 0;
  double operations = 0;
  double bytes = 0;
};

struct Milestone {
  std::string name;
  double seconds = 0;    // since the one before
  int64_t resident = 0;  // bytes of the process then
};

struct Update {
  std::map<std::string, double> metrics;
  double seconds = 0;
};

/// Collects; its device passes everything on and measures it.
class Watch final : public run::Probe {
 public:
  Watch();

  std::unique_ptr<device::Device> wrap(std::unique_ptr<device::Device> device) override;
  void milestone(std::string_view name) override;
  void planned(std::string_view what, std::span<const engine::MemoryPart> parts) override;
  void begin(run::Phase phase) override;
  void end(run::Phase phase, double seconds) override;
  void updated(const std::map<std::string, double>& metrics, double seconds) override;

  std::vector<Milestone> milestones;
  std::vector<std::pair<std::string, std::vector<engine::MemoryPart>>> parts;
  std::array<double, kPhases> phase_seconds{};
  std::vector<Update> updates;
  // Of the optimizer phase.
  Work forward, backward, weights;
  // Of the generation phase: passes that fill up with prompt tokens, and those of one token a sequence.
  Work prefill, decode;
  /// Bytes that the device held at most, and in a step; by what they are for.
  int64_t peak_bytes = 0;
  int64_t step_peak_bytes = 0;
  std::map<std::string, int64_t> peak_by_buffer;

 private:
  friend class WatchedDevice;
  double last_ = 0;
  int phase_ = -1;
  int64_t held_ = 0;  // bytes of the device
};

}  // namespace retro::profile
