// Sampling: a sequence's tokens depend on its own prompt, seed and settings, and their log-probabilities are
// those of scoring.
#include "engine/generator.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

using engine::Completion;
using engine::Finish;
using engine::GenerationRequest;

constexpr int32_t kContext = 200;

class Generation : public ::testing::TestWithParam<const char*> {
 protected:
  Generation() : device_(device::make_cpu_device(2)) {
    write_toy_model(folder_ / "toy.gguf", toy_model(GetParam()));
    model_ = std::make_unique<model::Model>(folder_ / "toy.gguf");
    adapter_ = model::make_adapter(
        model::choose_targets(*model_, std::vector<std::string>{"auto"}, 4, 8, tensor::DType::F16), 1);
    const RandomStream stream(1, "b");
    for (size_t i = 0; i < adapter_.weights.size(); ++i) {
      if (adapter_.weights[i] == 0) adapter_.weights[i] = 0.1F * (stream.uniform(i) - 0.5F);
    }
    const RandomStream random(2, "prompts");
    uint64_t draw = 0;
    for (const size_t length : {5U, 70U, 1U, 64U, 65U}) {
      auto& prompt = prompts_.emplace_back();
      for (size_t i = 0; i < length; ++i)
        prompt.push_back(3 + static_cast<int32_t>(random.below(draw++, 90)));
    }
  }

  /// Three answers to each prompt.
  std::vector<GenerationRequest> requests() const {
    std::vector<GenerationRequest> all;
    for (const auto& prompt : prompts_) {
      for (uint64_t k = 0; k < 3; ++k) {
        engine::SamplingOptions sampling;
        sampling.temperature = 1;
        sampling.top_p = 1;
        sampling.seed = 100 + all.size();
        all.push_back({prompt, sampling, static_cast<int32_t>(20 + 30 * k)});
      }
    }
    return all;
  }

  engine::GeneratorOptions options(int32_t concurrency, int32_t batch) const {
    engine::GeneratorOptions options;
    options.concurrency = concurrency;
    options.batch = batch;
    options.context = kContext;
    options.pages = engine::generation_pages(concurrency, 5, 70, 80);
    options.end_tokens = {7, 8, 40};
    options.fast = fast_;
    return options;
  }

  std::vector<Completion> generate(int32_t concurrency, int32_t batch, bool share = true) {
    engine::Generator generator(*device_, *model_, &adapter_, options(concurrency, batch));
    auto result = generator.generate(
        requests(), [](size_t, int64_t) { return true; }, share);
    generator.refresh_adapter();  // checks that every page was given back
    return result;
  }

  bool fast_ = false;
  support::TempFolder folder_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<model::Model> model_;
  model::Adapter adapter_;
  std::vector<std::vector<int32_t>> prompts_;
};

void expect_equal(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens) << i;
    EXPECT_EQ(a[i].logprobs, b[i].logprobs) << i;
    EXPECT_EQ(a[i].finish, b[i].finish) << i;
  }
}

TEST_P(Generation, DependsOnNothingElseInTheBatch) {
  for (const bool fast : {false, true}) {
    fast_ = fast;
    const auto alone = generate(1, 1, false);
    for (const auto& [concurrency, batch] : {std::pair{1, 128}, {3, 7}, {16, 64}, {16, 300}}) {
      for (const bool share : {true, false}) {
        SCOPED_TRACE(testing::Message() << concurrency << " at once, batch " << batch << " shared " << share);
        expect_equal(generate(concurrency, batch, share), alone);
      }
    }
  }
}

TEST_P(Generation, HasTheLogProbabilitiesOfScoring) {
  const auto completions = generate(16, 64);
  const auto all = requests();
  engine::EngineOptions options;
  options.train = false;
  options.micro_batch = 50;
  options.set_rows = kContext;
  engine::Engine scorer(*device_, &adapter_, engine::plan_engine(*model_, &adapter_.layout, options));
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t> tokens(all[i].prompt.begin(), all[i].prompt.end());
    std::vector<int32_t> targets(completions[i].tokens.size());
    std::iota(targets.begin(), targets.end(), static_cast<int32_t>(tokens.size()));
    tokens.insert(tokens.end(), completions[i].tokens.begin(), completions[i].tokens.end());
    std::vector<float> logprobs(targets.size());
    const engine::Sequence sequence{tokens, targets, logprobs, {}};
    scorer.score({&sequence, 1});
    EXPECT_EQ(logprobs, completions[i].logprobs) << i;
  }
}

TEST_P(Generation, EndsAtAnEndTokenOrTheLimit) {
  const auto all = requests();
  const auto completions = generate(4, 64);
  size_t ended = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [tokens, logprobs, finish] = completions[i];
    const auto is_end = [](int32_t token) { return token == 7 || token == 8 || token == 40; };
    ASSERT_FALSE(tokens.empty());
    EXPECT_EQ(std::count_if(tokens.begin(), tokens.end(), is_end), finish == Finish::end_token ? 1 : 0);
    if (finish == Finish::end_token) {
      EXPECT_TRUE(is_end(tokens.back()));
      ++ended;
    } else {
      EXPECT_EQ(tokens.size(), static_cast<size_t>(all[i].max_new_tokens));
    }
  }
  EXPECT_GT(ended, 0U);
  EXPECT_LT(ended, all.size());
}

// A fork continues as the original would, and neither disturbs the other; a truncated sequence goes on as if
// it had never been longer.
TEST_P(Generation, ForksAndTurnsGoOnAsIfComputedAtOnce) {
  engine::SamplingOptions sampling;
  sampling.temperature = 1;
  sampling.seed = 5;
  const auto answer = [&](engine::Generator& generator, engine::Generator::Id id, int32_t most) {
    generator.start(id, sampling, most);
    while (generator.sampling(id)) generator.step();
    return generator.completion(id);
  };
  engine::GeneratorOptions options = this->options(4, 32);
  options.end_tokens = {};
  engine::Generator generator(*device_, *model_, &adapter_, options);
  const auto first = generator.open();
  generator.append(first, prompts_[1]);
  const Completion turn = answer(generator, first, 10);
  const auto child = generator.fork(first);
  generator.append(first, prompts_[0]);
  generator.append(child, prompts_[3]);
  const Completion left = answer(generator, first, 20);
  const Completion right = answer(generator, child, 20);
  generator.truncate(first, prompts_[1].size());
  const Completion again = answer(generator, first, 10);
  EXPECT_EQ(again.tokens, turn.tokens);
  EXPECT_EQ(again.logprobs, turn.logprobs);
  generator.close(first);
  generator.close(child);
  for (const auto& [tail, expected] : {std::pair{&prompts_[0], &left}, {&prompts_[3], &right}}) {
    const auto fresh = generator.open();
    generator.append(fresh, prompts_[1]);
    generator.append(fresh, turn.tokens);
    generator.append(fresh, *tail);
    const Completion whole = answer(generator, fresh, 20);
    EXPECT_EQ(whole.tokens, expected->tokens);
    EXPECT_EQ(whole.logprobs, expected->logprobs);
    generator.close(fresh);
  }
}

TEST_P(Generation, ComputesASharedPromptOnce) {
  engine::Generator generator(*device_, *model_, &adapter_, options(3, 64));
  const auto all = requests();
  const auto three = std::span(all).subspan(3, 3);  // the prompt of 70 tokens
  const auto completions = generator.generate(three, [](size_t, int64_t) { return true; });
  int64_t rows = 69;
  for (const Completion& completion : completions) rows += static_cast<int64_t>(completion.tokens.size());
  EXPECT_EQ(generator.computed_tokens(), rows);
  EXPECT_EQ(generator.spared_tokens(), 3 * 69);
}

TEST_P(Generation, StopsWhenAsked) {
  engine::Generator generator(*device_, *model_, &adapter_, options(3, 64));
  EXPECT_THROW(generator.generate(requests(), [](size_t, int64_t tokens) { return tokens < 10; }), Error);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Generation, ::testing::Values("llama", "gemma3"));

TEST(KvPages, AreSharedAndGivenBack) {
  engine::KvPages pages(4);
  {
    engine::PageTable table(pages);
    table.extend(70);
    EXPECT_EQ(pages.unused(), 2);
    engine::PageTable child = table.fork();
    EXPECT_EQ(pages.unused(), 2);
    child.extend(3);
    EXPECT_EQ(pages.unused(), 1);
    EXPECT_EQ(child.rows(), 73);
    EXPECT_EQ(child.runs().back().begin, 70);
    table.extend(1);
    EXPECT_EQ(pages.unused(), 0);
    child.truncate(64);
    EXPECT_EQ(pages.unused(), 1);
    EXPECT_THROW(child.extend(65), Error);
  }
  EXPECT_EQ(pages.unused(), 4);
}

}  // namespace
}  // namespace retro::test
