"""Writes tests/data/policy_gradients.json: losses of GRPO (token and sequence ratios) and PPO with their gradients.

    python3 tools/references/policy_gradients.py tests/data/policy_gradients.json      # needs: pip install torch

A case is one completion: logits [tokens, vocabulary] of a table that stands for a model, the sampled ids, the
behaviour's and the reference's log-probabilities, an advantage (one for GRPO, one a token for PPO), and what PyTorch's
autograd makes of the loss in double: its value and d loss / d logits. The loss is written as in the papers, with
torch.minimum and torch.clamp; the k3 estimates are those of Schulman's note on approximating KL.
"""

import sys

import numbers_file
import torch

VOCABULARY = 5


def k3(log_ratio):
    return torch.exp(log_ratio) - log_ratio - 1


def clipped(ratio, advantage, low, high):
    return torch.minimum(ratio * advantage, torch.clamp(ratio, 1 - low, 1 + high) * advantage)


def grpo_loss(policy, case):
    log_ratio = policy - case["behavior"]
    if case["level"] == "sequence":
        ratio = torch.exp(log_ratio.mean()).expand(len(policy))
    else:
        ratio = torch.exp(log_ratio)
    loss = -clipped(ratio, case["advantage"], case["clip_low"], case["clip_high"]).sum()
    if case["kl_coefficient"] > 0:
        loss = loss + case["kl_coefficient"] * k3(case["reference"] - policy).sum()
    return loss / case["denominator"]


def ppo_loss(policy, case):
    log_ratio = policy - case["behavior"]
    ratio = torch.exp(log_ratio)
    surrogate = clipped(ratio, case["advantages"], case["clip_low"], case["clip_low"])
    kl = (ratio - 1) - log_ratio
    return (-surrogate + case["kl_coefficient"] * kl).mean() / case["denominator"]


def make_case(generator, tokens, algorithm, level, advantage, spread, kl_coefficient):
    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).float().double()

    logits = (2 * normal(tokens, VOCABULARY)).requires_grad_()
    ids = torch.randint(VOCABULARY, (tokens,), generator=generator)
    policy = torch.log_softmax(logits, -1)[torch.arange(tokens), ids]
    case = {
        "algorithm": algorithm, "level": level, "clip_low": 0.2, "clip_high": 0.28, "kl_coefficient": kl_coefficient,
        "denominator": 7.0 if algorithm == "grpo" else 3.0,
        "behavior": (policy.detach() + spread * normal(tokens)).float().double(),
        "reference": (policy.detach() + normal(tokens)).float().double(),
        "advantage": advantage, "advantages": normal(tokens),
    }
    loss = (grpo_loss if algorithm == "grpo" else ppo_loss)(policy, case)
    loss.backward()
    numbers = {key: value.tolist() if torch.is_tensor(value) else value for key, value in case.items()}
    return numbers | {
        "logits": logits.detach().flatten().tolist(), "ids": ids.tolist(), "loss": loss.item(),
        "dlogits": logits.grad.flatten().tolist(),
    }


def rounded(value):
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return numbers_file.significant(value, 10) if isinstance(value, float) else value


def main():
    generator = torch.Generator().manual_seed(11)
    cases = []
    for spread in [0.05, 0.6]:
        for kl_coefficient in [0.0, 0.3]:
            for advantage in [1.5, -0.75]:
                for level in ["token", "sequence"]:
                    cases.append(make_case(generator, 6, "grpo", level, advantage, spread, kl_coefficient))
            cases.append(make_case(generator, 9, "ppo", "token", 0.0, spread, kl_coefficient))
    numbers_file.write(sys.argv[1], {"vocabulary": VOCABULARY, "cases": rounded(cases)})


if __name__ == "__main__":
    main()
