#pragma once

#include <optional>
#include <string>

#include "device/op_args.h"

namespace retro::device::cpu {

/// Why the kernels cannot run `op`, in words for a user; nothing when they can.
std::optional<std::string> unsupported(const OpArgs& op);

}  // namespace retro::device::cpu
