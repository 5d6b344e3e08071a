#!/usr/bin/env python3
"""Scores answers to "Which number is larger, A or B?": 1 when the last number of the answer is the larger one, else 0.

Speaks retrograd-reward/1: one JSON object a line in, one out, in the same order, each flushed at once. What starts with
_retrograd_ is echoed. In reward_mode = "oneshot" the same program works: those fields and the greeting are not there.
"""

import json
import re
import sys


def score(prompt, completion):
    larger = max(int(number) for number in re.findall(r"[0-9]+", prompt))
    numbers = re.findall(r"[0-9]+", completion)
    return 1.0 if numbers and numbers[-1].lstrip("0") == str(larger) else 0.0


for line in sys.stdin:
    message = json.loads(line)
    if "protocol" in message or "_retrograd_batch_end" in message:
        answer = message
    else:
        answer = {key: value for key, value in message.items() if key.startswith("_retrograd_")}
        answer["reward"] = score(message["prompt"], message["completion"])
    print(json.dumps(answer), flush=True)
