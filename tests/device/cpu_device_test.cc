// The CPU device: memory, and which operations it takes.
#include <gtest/gtest.h>
#include <hwy/detect_targets.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "device/device.h"
#include "tests/support/cpu_targets.h"

namespace retro::test {
namespace {

using device::DType;
using device::Matrix;

TEST(CpuDevice, GivesZeroedMemoryAlignedTo64Bytes) {
  const auto device = device::make_cpu_device(2);
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{1000003}}) {
    auto* memory = static_cast<std::byte*>(device->allocate(bytes, "a test"));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], std::byte{0});
    memory[bytes - 1] = std::byte{1};
    device->release(memory, bytes);
  }
}

TEST(CpuDevice, SaysWhatItHasNoMemoryForAndWhatWouldHelp) {
  const auto device = device::make_cpu_device(1);
  try {
    device->allocate(size_t{1} << 60, "the activations of a pass");
    FAIL() << "2^60 bytes were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    const std::string message = error.what();
    EXPECT_NE(message.find("the activations of a pass"), std::string::npos) << message;
    EXPECT_NE(message.find("1152921504606846976"), std::string::npos) << message;
    EXPECT_NE(message.find("micro_batch"), std::string::npos) << message;
  }
}

TEST(CpuDevice, RefusesNoThreads) {
  EXPECT_THROW(device::make_cpu_device(0), Error);
}

TEST(CpuDevice, RefusesAProcessorWithoutFusedMultiplyAdd) {
  const OnTarget on(HWY_SCALAR);
  EXPECT_THROW(device::make_cpu_device(1), Error);
}

TEST(CpuDevice, NamesWhyAnOperationIsUnsupported) {
  const auto device = device::make_cpu_device(1);
  const Matrix f32{nullptr, 64, 64, DType::F32};
  const Matrix f16{nullptr, 64, 64, DType::F16};
  const Matrix q8{nullptr, 64, 64, DType::Q8_0};
  const auto reason = [&](const device::OpArgs& op) { return device->unsupported(op).value_or(""); };
  EXPECT_EQ(reason(device::AddArgs{f32, f32, f32}), "");
  EXPECT_NE(reason(device::AddArgs{f32, f16, f32}).find("F16"), std::string::npos);
  device::LinearArgs linear{.x = f32, .w = {nullptr, 64, 64, DType::Q4_K}, .y = f32, .lora = {}, .u = {}};
  EXPECT_EQ(reason(linear), "");
  linear.w.dtype = DType::Q8_K;
  EXPECT_NE(reason(linear).find("Q8_K"), std::string::npos);
  device::AttentionArgs attention{f32, f16, f16, f32, f32, 9, 3, 64, 1, 0};
  EXPECT_EQ(reason(attention), "");
  attention.heads = 10;
  EXPECT_NE(reason(attention).find("10"), std::string::npos);
  attention.heads = 9;
  attention.head_dim = 100000;
  EXPECT_NE(reason(attention).find("100000"), std::string::npos);
  attention.head_dim = 64;
  attention.carry_v = q8;
  EXPECT_NE(reason(attention).find("Q8_0"), std::string::npos);
  EXPECT_NE(reason(device::RopeArgs{f32, f32, nullptr, 1, 64, 63}), "");
  EXPECT_NE(reason(device::CopyArgs{q8, f32}), "");
}

}  // namespace
}  // namespace retro::test
