"""Writes tests/data/rollout_updates.json: whole updates of GRPO, GSPO and PPO worked out in plain Python.

    python3 tools/references/rollout_updates.py tests/data/rollout_updates.json      # needs nothing but Python

From fixed completions (their lengths, which were cut, their rewards) and log-probabilities to the gradients of the
log-probabilities: penalty, mask, baseline, dead groups, weights, denominators; for PPO, advantages, whitening and steps. Nothing
here is fast or clever; it is what the program must agree with. Log-probabilities are multiples of 2^-10, so that they are the same as f32.
"""

import math
import random
import sys

import numbers_file


def logprob(rng, near=None, spread=2.0):
    value = (near if near is not None else -2.5) + rng.uniform(-spread, spread)
    return round(1024 * value) / 1024


def make_answers(rng, groups, size, most):
    answers = []
    for group in range(groups):
        for _ in range(size):
            tokens = rng.randint(1, most)
            cut = rng.random() < 0.3
            tokens = most if cut else tokens
            policy = [logprob(rng) for _ in range(tokens)]
            answers.append({
                "group": group, "cut": cut, "reward": rng.choice([0.0, 0.5, 1.0, 2.0]), "policy": policy,
                "behavior": [logprob(rng, p, 0.4) for p in policy],
                "reference": [logprob(rng, p, 1.0) for p in policy],
                "values": [logprob(rng, 0.0, 0.5) for _ in policy],
            })
    # One group without spread.
    for answer in answers:
        if answer["group"] == groups - 1:
            answer["reward"], answer["cut"] = 1.0, False
    return answers


def penalized(answer, setting):
    length, most = len(answer["policy"]), setting["max_new_tokens"]
    over = length - (most - setting["buffer_tokens"])
    if setting["buffer_tokens"] == 0 or over <= 0:
        return answer["reward"]
    return answer["reward"] - setting["max_penalty"] * over / setting["buffer_tokens"]


def group_advantages(members, setting):
    live = [m for m in members if not (setting["mask_truncated"] and m["cut"])]
    rewards = [penalized(m, setting) for m in live]
    if len(live) < 2 or min(rewards) == max(rewards):
        return None
    result = {}
    for index, member in enumerate(live):
        others = rewards[:index] + rewards[index + 1 :] if setting["baseline"] == "leave_one_out" else rewards
        result[id(member)] = rewards[index] - sum(others) / len(others)
    return result


def not_clipped(ratio, advantage, setting):
    too_high = advantage > 0 and ratio > 1 + setting["clip_high"]
    too_low = advantage < 0 and ratio < 1 - setting["clip_low"]
    return 0.0 if too_high or too_low else 1.0


def grpo(setting, answers):
    for group in sorted({answer["group"] for answer in answers}):
        members = [answer for answer in answers if answer["group"] == group]
        advantages = group_advantages(members, setting)
        for member in members:
            member["advantage"] = advantages.get(id(member), 0.0) if advantages else 0.0
            member["live"] = bool(advantages) and id(member) in advantages
            member["gradient"] = [0.0] * len(member["policy"])
        if not advantages:
            continue
        denominator = len(advantages) * setting["max_new_tokens"]
        for member in members:
            if not member["live"]:
                continue
            a = member["advantage"]
            log_ratios = [p - b for p, b in zip(member["policy"], member["behavior"])]
            whole = math.exp(sum(log_ratios) / len(log_ratios))
            for t, log_ratio in enumerate(log_ratios):
                ratio = whole if setting["level"] == "sequence" else math.exp(log_ratio)
                to_reference = math.exp(member["reference"][t] - member["policy"][t])
                weight = a * ratio * not_clipped(ratio, a, setting)
                weight += setting["kl_coefficient"] * (to_reference - 1)
                member["gradient"][t] = -weight / denominator


def gae(reward, values, gamma, lam):
    result, next_value, running = [], 0.0, 0.0
    for t in reversed(range(len(values))):
        delta = (reward if t == len(values) - 1 else 0.0) + gamma * next_value - values[t]
        running = delta + gamma * lam * running
        next_value = values[t]
        result.insert(0, running)
    return result


def whitened(values):
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / math.sqrt(variance + 1e-8) for v in values]


def ppo(setting, answers):
    if setting["critic"]:
        plain = [gae(a["reward"], a["values"], setting["gamma"], setting["lambda"]) for a in answers]
        flat = whitened([value for answer in plain for value in answer])
        for answer, own in zip(answers, plain):
            answer["advantages"] = [flat.pop(0) for _ in own]
            answer["returns"] = [g + v for g, v in zip(own, answer["values"])]
    else:
        rewards = whitened([a["reward"] for a in answers])
        for answer, reward in zip(answers, rewards):
            answer["advantages"] = [reward] * len(answer["policy"])
    # Steps: whole answers in a row, as many as fit; here in the order of the list, the prompt one token.
    steps, used = [], 0
    for answer in answers:
        length = 1 + len(answer["policy"])
        if not steps or used + length > setting["ctx"]:
            steps.append([])
            used = 0
        steps[-1].append(answer)
        used += length
    for number, step in enumerate(steps):
        for answer in step:
            answer["step"] = number
            answer["gradient"] = []
            for t, advantage in enumerate(answer["advantages"]):
                ratio = math.exp(answer["policy"][t] - answer["behavior"][t])
                weight = advantage * ratio * not_clipped(ratio, advantage, setting)
                weight += setting["kl_coefficient"] * (1 - ratio)
                answer["gradient"].append(-weight / len(answer["policy"]) / len(step))


def settings():
    plain = {
        "algorithm": "grpo", "max_new_tokens": 8, "buffer_tokens": 0, "max_penalty": 0.0, "mask_truncated": False,
        "baseline": "mean", "level": "token", "kl_coefficient": 0.0, "clip_low": 0.2, "clip_high": 0.28,
    }
    yield plain
    yield plain | {"mask_truncated": True, "baseline": "leave_one_out", "kl_coefficient": 0.1}
    yield plain | {"buffer_tokens": 5, "max_penalty": 0.7, "kl_coefficient": 0.05}
    yield plain | {"level": "sequence", "clip_low": 0.05, "clip_high": 0.06, "kl_coefficient": 0.1}
    rest = {"algorithm": "ppo", "max_new_tokens": 8, "kl_coefficient": 0.1, "clip_low": 0.2, "clip_high": 0.2, "ctx": 20}
    yield rest | {"critic": True, "gamma": 0.97, "lambda": 0.9}
    yield rest | {"critic": False}


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return numbers_file.significant(value, 12) if isinstance(value, float) else value


def main():
    updates = []
    for number, setting in enumerate(settings()):
        answers = make_answers(random.Random(number), 4, 5, setting["max_new_tokens"])
        (grpo if setting["algorithm"] == "grpo" else ppo)(setting, answers)
        updates.append({"setting": setting, "answers": answers})
    numbers_file.write(sys.argv[1], rounded(updates))


if __name__ == "__main__":
    main()
