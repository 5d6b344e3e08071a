"""Gradient of the mean negative log-likelihood with respect to a LoRA adapter, by transformers in float32.

The adapter lies on every linear layer, with A and B both non-zero and drawn from a counter, so that any program can
make the same one. For the GGUF tensor `name` (such as `blk.3.attn_q.weight.lora_a`) and row-major index i:

    u(name, i) = (splitmix64(fnv1a64(name) + i) >> 40) / 2^24
    value      = float32((2 u - 1) * amplitude), in double before the rounding
    A [rank, in] (`.lora_a`): amplitude 1 / sqrt(in);  B [out, rank] (`.lora_b`): amplitude 0.05

and y = W x + (ALPHA / RANK) B (A x). Stored for each tensor's gradient g, in the GGUF's own order of rows: its norm
and eight signed sums p_j = sum_i s_j(i) g_i, where s_j(i) is +1 if bit j of splitmix64(fnv1a64(name) ^ (i + SALT))
is set, else -1; a sum's size is about the norm, so its error is to be judged against the norm.
"""
import argparse
import os

import numpy as np
import torch

import gguf_model
import numbers_file

RANK, ALPHA, B_AMPLITUDE, SALT, PROJECTIONS = 4, 8, 0.05, 0x5BD1E995, 8
MODULES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def splitmix64(x):
    """Elementwise on uint64, which wraps as the definition asks."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def counter_values(name, rows, cols, amplitude):
    index = np.arange(rows * cols, dtype=np.uint64)
    u = (splitmix64(index + np.uint64(fnv1a64(name))) >> np.uint64(40)) / 2.0**24
    return torch.from_numpy(((2 * u - 1) * amplitude).astype(np.float32).reshape(rows, cols))


def projections(name, gradient):
    flat = gradient.double().numpy().ravel()
    bits = splitmix64(np.uint64(fnv1a64(name)) ^ (np.arange(flat.size, dtype=np.uint64) + np.uint64(SALT)))
    return [float(np.where((bits >> np.uint64(j)) & np.uint64(1), flat, -flat).sum()) for j in range(PROJECTIONS)]


def gguf_row_order(config, tensor, rows):
    """Index of the transformers row behind each GGUF row: the llama architecture stores the two halves of a rotated
    head interleaved, transformers one after the other."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(tensor)
    order = torch.arange(rows)
    if config.model_type == "llama" and heads:
        order = order.reshape(heads, 2, rows // heads // 2).transpose(1, 2).reshape(-1)
    return order


def attach(model):
    """Adds the adapter; returns {name: leaf tensor}, each with its rows in the order of the file."""
    leaves = {}
    for number, layer in enumerate(model.model.layers):
        for tensor, path in MODULES.items():
            linear = layer.get_submodule(path)
            rows, cols = linear.weight.shape
            name = f"blk.{number}.{tensor}.weight"
            a = counter_values(f"{name}.lora_a", RANK, cols, cols**-0.5).to(linear.weight.dtype).requires_grad_()
            b = counter_values(f"{name}.lora_b", rows, RANK, B_AMPLITUDE).to(linear.weight.dtype).requires_grad_()
            # Row h of transformers' product is row to_gguf[h] of the file's.
            to_gguf = gguf_row_order(model.config, tensor, rows).argsort()
            linear.register_forward_hook(
                lambda _, inputs, y, a=a, b=b, rows=to_gguf: y + (ALPHA / RANK) * (inputs[0] @ a.T @ b[rows].T))
            leaves |= {f"{name}.lora_a": a, f"{name}.lora_b": b}
    return leaves


def gradients(model, leaves, ids):
    """(loss, {name: gradient}) of the mean over all tokens with a predecessor."""
    # In double from here on: the float32 softmax over a whole vocabulary would be this file's largest error.
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1].double()
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]))
    return loss.item(), dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values()))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("text", help="text file")
    parser.add_argument("out", help="JSON file to write")
    parser.add_argument("--tokens", type=int, help="only so many of the text's first tokens")
    args = parser.parse_args()
    model, tokenizer, metadata = gguf_model.load(args.model)
    with open(args.text, encoding="utf-8") as file:
        ids = tokenizer(file.read()).input_ids[:args.tokens]
    loss, found = gradients(model, attach(model), ids)
    digits = numbers_file.significant
    tensors = {
        name: {"norm": digits(gradient.double().norm().item()),
               "projections": [digits(value) for value in projections(name, gradient)]}
        for name, gradient in found.items()}
    numbers_file.write(args.out, {
        "model": metadata["general.name"], "text": os.path.basename(args.text), "rank": RANK, "alpha": ALPHA,
        "ids": ids, "loss": digits(loss), "tensors": tensors})


if __name__ == "__main__":
    main()
