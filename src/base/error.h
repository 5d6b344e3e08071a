// The one exception type of the program, and the contract check.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace retro {

/// What went wrong, in the caller's terms: decides the exit code at the front door.
enum class ErrorKind { config, data, model, device, io, protocol, interrupted, internal };

/// A failure with a sentence a user can act on. Boundaries (file, tensor, key) add a frame in front.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

  /// The same failure with `frame: ` in front, as "model.gguf: tensor 'x': …".
  Error within(const std::string& frame) const { return Error(kind_, frame + ": " + what()); }

 private:
  ErrorKind kind_;
};

/// Throws Error(kind, formatted message).
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void contract_broken(const char* condition, const char* file, int line);

}  // namespace retro

/// Aborts on a broken internal contract; never for anything a user or a file can cause.
#define RETRO_CHECK(condition) \
  ((condition) ? (void)0 : ::retro::contract_broken(#condition, __FILE__, __LINE__))
