// Many answers at once: admission, and one computation of a prompt for all its answers.
#include <algorithm>

#include "base/error.h"
#include "engine/generator.h"

namespace retro::engine {

namespace {

constexpr size_t kNoSequence = static_cast<size_t>(-1);

/// A prompt but for its last token, whose row each answer computes itself.
struct Prompt {
  std::span<const int32_t> tokens;
  size_t id = kNoSequence;  // where it has more than one token
  int64_t pages = 0;
  int64_t answers = 0;  // that still need it
};

struct Answer {
  size_t request = 0;
  size_t prompt = 0;
  size_t id = kNoSequence;  // none before its prompt is computed
};

}  // namespace

std::vector<Completion> Generator::generate(std::span<const GenerationRequest> requests,
                                            const Progress& progress, bool share_prompts) {
  std::vector<Completion> completions(requests.size());
  std::vector<Prompt> prompts;
  std::vector<Answer> answers;
  int64_t reserved = 0;
  size_t next = 0;
  size_t finished = 0;
  const int64_t sampled_before = sampled_;

  const auto close_unused = [&] {
    for (size_t p = 0; p < prompts.size(); ++p) {
      Prompt& prompt = prompts[p];
      // The latest prompt stays as long as the next request has it.
      const bool last = p + 1 == prompts.size() && next < requests.size() && share_prompts &&
                        std::ranges::equal(prompt.tokens, requests[next].prompt);
      if (prompt.id == kNoSequence || prompt.answers > 0 || last) continue;
      close(prompt.id);
      reserved -= prompt.pages;
      prompt.id = kNoSequence;
    }
  };
  const auto admit = [&] {
    const GenerationRequest& request = requests[next];
    const bool known =
        share_prompts && !prompts.empty() && std::ranges::equal(prompts.back().tokens, request.prompt);
    const int64_t prompt_pages = known ? 0 : pages_of(static_cast<int64_t>(request.prompt.size()) - 1);
    const int64_t own_pages = pages_of(request.max_new_tokens);
    if (reserved + prompt_pages + own_pages > pages_.count()) return false;
    if (!known) {
      prompts.push_back({request.prompt, kNoSequence, prompt_pages, 0});
      if (request.prompt.size() > 1) {
        prompts.back().id = open();
        append(prompts.back().id, request.prompt.first(request.prompt.size() - 1));
      }
    }
    ++prompts.back().answers;
    reserved += prompt_pages + own_pages;
    answers.push_back({next, prompts.size() - 1, kNoSequence});
    ++next;
    return true;
  };
  const auto begin = [&](Answer& answer) {
    const GenerationRequest& request = requests[answer.request];
    const size_t prompt = prompts[answer.prompt].id;
    if (answer.id != kNoSequence || (prompt != kNoSequence && pending(prompt))) return;
    answer.id = prompt == kNoSequence ? open() : fork(prompt);
    append(answer.id, request.prompt.last(1));
    start(answer.id, request.sampling, request.max_new_tokens);
  };
  const auto end = [&](const Answer& answer) {
    if (answer.id == kNoSequence || sampling(answer.id)) return false;
    completions[answer.request] = std::move(at(answer.id).completion);
    close(answer.id);
    --prompts[answer.prompt].answers;
    reserved -= pages_of(requests[answer.request].max_new_tokens);
    ++finished;
    return true;
  };

  while (finished < requests.size()) {
    while (next < requests.size() && answers.size() < static_cast<size_t>(options_.concurrency) && admit()) {
    }
    close_unused();
    if (answers.empty() && next < requests.size() && !admit()) {
      fail(ErrorKind::internal, "the pages of keys and values do not hold one answer");
    }
    for (Answer& answer : answers) begin(answer);
    step();
    std::erase_if(answers, end);
    if (!progress(finished, sampled_ - sampled_before)) fail(ErrorKind::interrupted, "interrupted");
  }
  close_unused();
  return completions;
}

}  // namespace retro::engine
