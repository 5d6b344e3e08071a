// A model with its text side: tokenizer and chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace retro::run {

/// The day that templates see while training: a fixed one, 26 July 2024, so that the same document gives the
/// same bytes on every day.
constexpr int64_t kTrainingDate = 1721952000;

struct ModelContext {
  model::Model model;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat;  // the file's, or its family's; none where we know neither

  /// Opens the file and reads all three. Throws Error(model) naming the file.
  explicit ModelContext(const std::filesystem::path& path, int64_t template_date = kTrainingDate);

  /// What to tell the user where the file has no chat template and its family's published turn format is
  /// used; empty elsewhere.
  std::string template_note() const;

  /// The template; Error(data) that says what to do for a model without one.
  const text::ChatTemplate& chat_template() const;
};

}  // namespace retro::run
