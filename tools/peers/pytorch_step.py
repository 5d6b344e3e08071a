"""One LoRA step (rank 8, all linear layers, AdamW, float32) of PyTorch + PEFT on a GGUF file: prints JSON.

Needs torch, transformers, peft and gguf. The model is dequantized to float32, which is how PyTorch trains it.
"""
import argparse
import json
import os
import resource
import sys
import time

import torch
from peft import LoraConfig, get_peft_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "references"))
import gguf_model

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--steps", type=int, default=2, help="timed steps; one more warms up")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--checkpointing", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)

    model, _, _ = gguf_model.load(args.model)
    model.set_attn_implementation("sdpa")  # the faster one here
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=LINEAR))
    if args.checkpointing:
        model.gradient_checkpointing_enable()
        model.enable_input_require_grads()
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0)
    ids = torch.randint(10, 40000, (1, args.ctx))
    seconds = []
    for _ in range(args.steps + 1):
        start = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    timed = sorted(seconds[1:])
    print(json.dumps({"tokens_per_second": args.ctx / timed[len(timed) // 2],
                      "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
