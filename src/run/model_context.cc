#include "run/model_context.h"

#include "base/error.h"
#include "model/vocabulary.h"

namespace retro::run {

namespace {

std::optional<text::ChatTemplate> read_template(const gguf::Reader& file, const text::Vocabulary& vocabulary,
                                                int64_t date) {
  if (!file.has("tokenizer.chat_template")) return std::nullopt;
  text::TemplateTokens tokens;
  const auto spelled = [&](std::optional<text::TokenId> id) {
    return id ? std::string(vocabulary.text(*id)) : std::string();
  };
  tokens.bos = spelled(vocabulary.bos());
  tokens.eos = spelled(vocabulary.eos());
  for (const text::TokenId id : vocabulary.eog_ids()) tokens.ends.emplace_back(vocabulary.text(id));
  try {
    return text::ChatTemplate(file.get_string("tokenizer.chat_template"), std::move(tokens), date);
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
