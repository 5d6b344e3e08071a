// Chat formats of model families whose files may come without a template.
#pragma once

#include <optional>
#include <string_view>

namespace retro::text {

/// The published turn format of an architecture's instruction-tuned models, as a template; nothing where we
/// know none. For a file without `tokenizer.chat_template`; the caller says that it is used.
std::optional<std::string_view> known_template(std::string_view architecture);

}  // namespace retro::text
