"""Measures whole steps, levers, kernels and decoding, beside PyTorch + PEFT where it is installed, and writes the tables
of docs/benchmarks.md.

    tools/benchmarks.py MODEL... [--bench PROGRAM] [--rounds N] [--only NAME,...] [--document FILE]

Everything that is compared is run in turn, round by round, and the ratio is the median over the rounds: the machine may
be shared. The peer runs with $RETRO_PEER_PYTHON, else python3, if that has torch, transformers, peft and gguf.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = os.path.join(ROOT, "tools", "peers", "pytorch_step.py")
MIB = 2**20


class Programs:
    def __init__(self, bench, peer):
        self.bench, self.peer = bench, peer

    def ours(self, command, *options):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            subprocess.run([self.bench, command, *map(str, options), "--json", file.name], check=True,
                           stdout=subprocess.DEVNULL)
            return json.load(file)

    def pytorch(self, model, *options):
        if self.peer is None:
            return None
        result = subprocess.run([self.peer, PEER, model, *map(str, options)], capture_output=True, text=True)
        if result.returncode != 0:
            print(result.stderr[-2000:], file=sys.stderr)
            return None
        return json.loads(result.stdout.splitlines()[-1])


def peer_python():
    python = os.environ.get("RETRO_PEER_PYTHON", "python3")
    probe = subprocess.run([python, "-c", "import torch, transformers, peft, gguf"], capture_output=True)
    return python if probe.returncode == 0 else None


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| --- " + "| ---: " * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def middle(values):
    return statistics.median(values)


def label(model):
    return os.path.basename(model).removesuffix(".gguf")


def machine(programs, models, rounds):
    one, both = [], []
    for _ in range(rounds):
        one.append(programs.ours("train", "--model", models[0], "--threads", 1))
        both.append(programs.ours("train", "--model", models[0]))
    rows = [[r[0]["threads"], f"{middle([f['fma_peak_gflops'] for f in r]):.0f}",
             f"{middle([f['read_gb_per_second'] for f in r]):.1f}",
             f"{middle([f['tokens_per_second'] for f in r]):.0f}"] for r in (one, both)]
    ratio = middle([b["tokens_per_second"] / a["tokens_per_second"] for a, b in zip(one, both)])
    return (table(["threads", "f32 FMA peak, GFLOP/s", "memory read, GB/s", "step, tokens/s"], rows)
            + f"\n\nThe step on all threads is {ratio:.2f} times as fast as on one.")


# ctx, options of ours, options of PyTorch.
STEPS = [
    (512, ["--micro-batch", 512], []),
    (512, ["--micro-batch", 64], []),
    (512, ["--micro-batch", 512, "--checkpoint-layers", 4, "--checkpoint-dtype", "bf16"], ["--checkpointing"]),
    (2048, ["--micro-batch", 512], []),
    (2048, ["--micro-batch", 256, "--checkpoint-layers", 4, "--checkpoint-dtype", "bf16"], []),
]


def steps(programs, models, rounds):
    cases = [(models[0], *case) for case in STEPS] + [(model, *STEPS[0]) for model in models[1:]]
    ours = {i: [] for i in range(len(cases))}
    peers = {i: [] for i in range(len(cases))}
    for _ in range(rounds):
        done = {}  # the peer's figure of this round, by what it is asked
        for i, (model, ctx, options, peer_options) in enumerate(cases):
            ours[i].append(programs.ours("train", "--model", model, "--ctx", ctx, "--steps", 3, *options))
            asked = (model, ctx, *peer_options)
            if asked not in done:
                done[asked] = programs.pytorch(model, "--ctx", ctx, "--threads", ours[i][-1]["threads"], *peer_options)
            peers[i].append(done[asked])
            print(label(model), ctx, *options, ours[i][-1], peers[i][-1], file=sys.stderr, flush=True)
    rows = []
    for i, (model, ctx, options, peer_options) in enumerate(cases):
        figures = ours[i]
        row = [label(model), ctx, " ".join(map(str, options)).replace("--", ""),
               f"{middle([f['tokens_per_second'] for f in figures]):.0f}",
               f"{100 * middle([f['share_of_fma_peak'] for f in figures]):.0f} %",
               f"{max(f['peak_rss_bytes'] for f in figures) / MIB:.0f}"]
        pairs = [(f, p) for f, p in zip(figures, peers[i]) if p is not None]
        if pairs:
            row += [f"{middle([p['tokens_per_second'] for _, p in pairs]):.0f}" + (" (checkpointing)" if peer_options else ""),
                    f"{max(p['peak_rss_bytes'] for _, p in pairs) / MIB:.0f}",
                    f"{middle([f['tokens_per_second'] / p['tokens_per_second'] for f, p in pairs]):.1f}×"]
        else:
            row += ["", "", ""]
        rows.append(row)
    return table(["model", "ctx", "setting", "tokens/s", "of the peak", "MiB", "PyTorch tokens/s", "PyTorch MiB", "ratio"],
                 rows)


LEVERS = [
    ("ctx 512, micro_batch 512", 512, ["--micro-batch", 512]),
    ("micro_batch 256", 512, ["--micro-batch", 256]),
    ("micro_batch 128", 512, ["--micro-batch", 128]),
    ("micro_batch 64", 512, ["--micro-batch", 64]),
    ("micro_batch 32", 512, ["--micro-batch", 32]),
    ("checkpointing, stride 4, f32", 512, ["--micro-batch", 512, "--checkpoint-layers", 4]),
    ("checkpointing, stride 4, bf16", 512,
     ["--micro-batch", 512, "--checkpoint-layers", 4, "--checkpoint-dtype", "bf16"]),
    ("chunked_cross_entropy off", 512, ["--micro-batch", 512, "--whole-logits"]),
    ("kv_dtype f32", 512, ["--micro-batch", 512, "--kv-dtype", "f32"]),
    ("ctx 1024, micro_batch 256", 1024, ["--micro-batch", 256]),
    ("ctx 2048, micro_batch 256", 2048, ["--micro-batch", 256]),
]


def at_peak(figures):
    """Tokens for each of the operations that the machine had to give at that moment: its moods do not change it."""
    return figures["tokens_per_second"] / (figures["gflops"] / figures["share_of_fma_peak"])


def levers(programs, models, rounds):
    figures = {name: [] for name, _, _ in LEVERS}
    for _ in range(rounds):
        for name, ctx, options in LEVERS:
            figures[name].append(programs.ours("train", "--model", models[0], "--ctx", ctx, "--steps", 3, *options))
    first = LEVERS[0][0]
    rows = []
    for name, ctx, _ in LEVERS:
        time = middle([at_peak(base) / at_peak(own) for base, own in zip(figures[first], figures[name])])
        parts = figures[name][0]["parts"]
        rows.append([name, f"{max(f['peak_rss_bytes'] for f in figures[name]) / MIB:.0f}"]
                    + [f"{parts[part] / MIB:.1f}" for part in ("kept", "working", "logits", "kv", "kv_gradients")]
                    + [f"{time:.2f}"])
    return table(["setting", "MiB in all", "kept", "working", "logits", "K/V", "their gradients", "time a token"], rows)


def operations(programs, models, _):
    results = [programs.ours("train", "--model", model, "--by-operation")["operations"] for model in models]
    names = sorted(set().union(*results), key=lambda name: -results[0].get(name, {}).get("share_of_time", 0))
    rows = []
    for name in names:
        row = [name]
        for result in results:
            figures = result.get(name, {})
            peak = figures.get("share_of_fma_peak")
            row += [f"{100 * figures.get('share_of_time', 0):.1f} %", f"{100 * peak:.0f} %" if peak else ""]
        rows.append(row)
    return table(["operation"] + [text for model in models for text in (label(model), "of the FMA peak")], rows)


def kernels(programs, models, _):
    best = programs.ours("kernels")
    sets = [best] + ([programs.ours("kernels", "--target", "AVX2")] if best["instruction_set"] != "AVX2" else [])
    rows = []
    for at, row in enumerate(best["rows"]):
        rows.append([row["name"], f"{row['out']} × {row['in']}"]
                    + [f"{100 * result['rows'][at]['share_of_fma_peak'][count]:.0f}"
                       for result in sets for count in ("1", "8", "64", "256", "512")])
    header = ["kernel", "shape"] + [f"{s['instruction_set']}: {count}" if count == "1" else count
                                    for s in sets for count in ("1", "8", "64", "256", "512")]
    return table(header, rows)


def generate(programs, models, _):
    rows = []
    for model, products in [(model, products) for model in models for products in ("fast", "exact")]:
        for row in programs.ours("generate", "--model", model, "--" + products)["rows"]:
            rows.append([label(model), products, row["sequences"], f"{row['prefill_tokens_per_second']:.0f}",
                         f"{100 * row['prefill_share_of_fma_peak']:.0f} %", f"{row['decode_tokens_per_second']:.0f}",
                         f"{100 * row['decode_share_of_read_bandwidth']:.0f} %", f"{row['kv_bytes'] / MIB:.1f}"])
    return table(["model", "products", "sequences", "prefill tokens/s", "of the FMA peak", "decode tokens/s",
                  "of the read bandwidth", "K/V, MiB"], rows)


SECTIONS = {"machine": machine, "steps": steps, "levers": levers, "operations": operations, "kernels": kernels,
            "generate": generate}


def put(document, name, text):
    """Replaces what stands between the section's two comments."""
    with open(document) as file:
        content = file.read()
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = content.split(begin)
    after = rest.split(end)[1]
    with open(document, "w") as file:
        file.write(before + begin + text + "\n" + end + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--bench", default=os.path.join(ROOT, "build", "release", "retrograd-bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="sections, of " + ", ".join(SECTIONS))
    parser.add_argument("--document", default=os.path.join(ROOT, "docs", "benchmarks.md"))
    args = parser.parse_args()
    programs = Programs(args.bench, peer_python())
    if programs.peer is None:
        print("PyTorch is not measured: no torch, transformers, peft and gguf for $RETRO_PEER_PYTHON or python3",
              file=sys.stderr)
    names = args.only.split(",") if args.only else list(SECTIONS)
    with open(args.document) as file:
        content = file.read()
    for name in names:
        if name not in SECTIONS:
            parser.error(f"--only: no section {name}; there are {', '.join(SECTIONS)}")
        if f"<!-- {name} -->\n" not in content or f"<!-- end of {name} -->\n" not in content:
            parser.error(f"{args.document}: has no comments around the section {name}")
    for name in names:
        text = SECTIONS[name](programs, args.models, args.rounds)
        print(f"\n{name}\n{text}", flush=True)
        if name == "steps" and programs.peer is None:
            print(f"{args.document} keeps the steps it has, which were measured beside the peer", file=sys.stderr)
        else:
            put(args.document, name, text)


if __name__ == "__main__":
    main()
