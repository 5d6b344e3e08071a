#include "run/model_context.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/vocabulary.h"
#include "text/known_templates.h"

namespace retro::run {

namespace {

std::optional<text::ChatTemplate> read_template(const gguf::Reader& file, const text::Vocabulary& vocabulary,
                                                int64_t date) {
  const bool own = file.has("tokenizer.chat_template");
  const auto known = own ? std::nullopt : text::known_template(file.get_string("general.architecture", ""));
  if (!own && !known) return std::nullopt;
  text::TemplateTokens tokens;
  const auto spelled = [&](std::optional<text::TokenId> id) {
    return id ? std::string(vocabulary.text(*id)) : std::string();
  };
  tokens.bos = spelled(vocabulary.bos());
  tokens.eos = spelled(vocabulary.eos());
  for (const text::TokenId id : vocabulary.eog_ids()) tokens.ends.emplace_back(vocabulary.text(id));
  try {
    return text::ChatTemplate(own ? file.get_string("tokenizer.chat_template") : *known, std::move(tokens),
                              date);
  } catch (const Error& error) {
    throw error.within(file.path().string() + ": tokenizer.chat_template");
  }
}

}  // namespace

ModelContext::ModelContext(const std::filesystem::path& path, int64_t template_date)
    : model(path),
      tokenizer(model::make_tokenizer(model.file())),
      chat(read_template(model.file(), tokenizer.vocabulary(), template_date)) {
  if (tokenizer.size() != static_cast<size_t>(model.hyperparameters().vocabulary)) {
    fail(ErrorKind::model, "{}: the vocabulary has {} tokens and token_embd.weight {} rows", path.string(),
         tokenizer.size(), model.hyperparameters().vocabulary);
  }
}

std::string ModelContext::template_note() const {
  if (!chat || model.file().has("tokenizer.chat_template")) return "";
  return fmt::format(
      "{}: has no chat template (tokenizer.chat_template); the published turn format of {} models is used",
      model.file().path().string(), model.architecture());
}

const text::ChatTemplate& ModelContext::chat_template() const {
  if (!chat) {
    fail(ErrorKind::data,
         "{}: has no chat template (tokenizer.chat_template), so conversations cannot be rendered; train on "
         "plain "
         "text (.txt), or use a model file that carries its template",
         model.file().path().string());
  }
  return *chat;
}

}  // namespace retro::run
