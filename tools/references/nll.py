"""Negative log-likelihood of every token of the test texts, by transformers on the dequantized model.

For each text: the token ids of the whole file, and for every token with a predecessor -log p(token | all before it).
"""
import argparse
import os

import torch

import gguf_model
import numbers_file

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data")
CHUNK = 128  # positions whose logits exist at a time


def token_nll(model, ids):
    """[len(ids) - 1] in float64, from float32 logits."""
    with torch.no_grad():
        hidden = model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0, :-1]
        targets = torch.tensor(ids[1:])
        parts = []
        for rows, wanted in zip(hidden.split(CHUNK), targets.split(CHUNK)):
            logits = model.lm_head(rows).double()
            parts.append(logits.logsumexp(-1) - logits.gather(-1, wanted[:, None])[:, 0])
    return torch.cat(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("out", help="JSON file to write")
    parser.add_argument("--texts", nargs="+", default=["text_50.txt", "text_300.txt", "text_1100.txt"])
    args = parser.parse_args()
    model, tokenizer, metadata = gguf_model.load(args.model)
    texts = []
    for name in args.texts:
        with open(os.path.join(DATA, name), encoding="utf-8") as file:
            ids = tokenizer(file.read()).input_ids
        nll = token_nll(model, ids)
        texts.append({
            "file": name, "ids": ids, "mean": numbers_file.significant(nll.mean().item()),
            "nll": [numbers_file.significant(value) for value in nll.tolist()]})
    numbers_file.write(args.out, {"model": metadata["general.name"], "texts": texts})


if __name__ == "__main__":
    main()
