#!/usr/bin/env python3
"""Writes prompts.jsonl and heldout.jsonl beside itself: "Which number is larger, A or B?", no pair in both."""

import itertools
import json
import pathlib
import random

random.seed(7)
folder = pathlib.Path(__file__).parent
pairs = random.sample(list(itertools.permutations(range(1, 100), 2)), 640)
unordered = set()
for name, count in [("prompts.jsonl", 400), ("heldout.jsonl", 240)]:
    with open(folder / name, "w", encoding="utf-8") as file:
        while count > 0:
            a, b = pairs.pop() if pairs else random.sample(range(1, 100), 2)
            if (min(a, b), max(a, b)) in unordered:
                continue
            unordered.add((min(a, b), max(a, b)))
            message = {"role": "user", "content": f"Which number is larger, {a} or {b}?"}
            file.write(json.dumps({"messages": [message]}) + "\n")
            count -= 1
