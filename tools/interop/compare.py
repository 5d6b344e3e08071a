#!/usr/bin/env python3
"""Holds an adapter trained here against a stock llama.cpp that loads it.

  pip install llama-cpp-python==0.3.36 numpy gguf     (in a virtual environment; builds llama.cpp)
  ./dev build retrograd logits
  tools/interop/compare.py MODEL ADAPTER [--tokens 96]
  ./dev build retrograd logits toy_model
  tools/interop/compare.py --toys

On an F32 copy of the base, made by llama.cpp's own quantizer, with the adapter: relative L2 distance of all logits,
with f32 and with f16 keys and values (bars 1e-3, 1e-2). On the quantized base, where llama.cpp rounds activations
to 8 bits: relative difference of the mean negative log-likelihood (bar 1 %). Exits 1 when a bar is missed.

With --toys: trains an adapter for each toy model of the tests and compares the logits as above. llama.cpp ignores the
sliding windows of llama and phi3 files, so those are compared on as many tokens as a window holds.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import gguf
import llama_cpp
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests" / "data" / "text_300.txt"


def our_logits(model, adapter, kv, ids):
    words = " ".join(map(str, ids)).encode()
    out = subprocess.run([ROOT / "build/release/logits", model, adapter or "-", kv], input=words, capture_output=True, check=True)
    return numpy.frombuffer(out.stdout, dtype=numpy.float32).reshape(len(ids), -1)


def their_logits(model, adapter, kv, ids):
    kind = {"f32": llama_cpp.GGML_TYPE_F32, "f16": llama_cpp.GGML_TYPE_F16}[kv]
    llama = llama_cpp.Llama(str(model), lora_path=adapter and str(adapter), n_ctx=len(ids), n_batch=len(ids), n_threads=2,
                            logits_all=True, type_k=kind, type_v=kind, verbose=False)
    llama.eval(ids)
    return numpy.array(llama.scores[: len(ids)], dtype=numpy.float32)


def f32_copy(model, path):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    params.allow_requantize = True
    params.nthread = 2
    if llama_cpp.llama_model_quantize(str(model).encode(), str(path).encode(), ctypes.byref(params)) != 0:
        raise RuntimeError("llama.cpp's quantizer failed")


def mean_nll(logits, ids):
    rows = logits[:-1].astype(numpy.float64)
    rows -= rows.max(axis=1, keepdims=True)
    logprobs = rows - numpy.log(numpy.exp(rows).sum(axis=1, keepdims=True))
    return -logprobs[numpy.arange(len(ids) - 1), ids[1:]].mean()


def relative_distance(a, b):
    return numpy.linalg.norm(a.astype(numpy.float64) - b) / numpy.linalg.norm(b.astype(numpy.float64))


RUN = """[run]
algorithm = "sft"
[model]
path = "model.gguf"
[output]
path = "adapter.gguf"
[sft]
data = "train.jsonl"
[lora]
rank = 4
alpha = 8.0
dtype = "f32"
[training]
epochs = 3
lr = 2e-2
ctx = 128
"""


def compare_logits(label, model, adapter, ids):
    """Whether f32 and f16 keys and values keep their bars, on a base in F32."""
    met = True
    for kv, bar in (("f32", 1e-3), ("f16", 1e-2)):
        ours = our_logits(model, adapter, kv, ids)
        distance = relative_distance(ours, their_logits(model, adapter, kv, ids))
        base = relative_distance(ours, their_logits(model, None, kv, ids))
        print(f"{label}, {kv} keys and values: logits apart {distance:.2e} (bar {bar:.0e}); without the adapter {base:.2e}")
        met = met and distance < bar < base
    return met


def compare_toy(name, folder):
    model = folder / "model.gguf"
    subprocess.run([ROOT / "build/release/toy_model", name, model], check=True)
    (folder / "run.toml").write_text(RUN)
    turns = '{{"messages":[{{"role":"user","content":"question {0}?"}},{{"role":"assistant","content":"and {0} answers"}}]}}\n'
    (folder / "train.jsonl").write_text("".join(turns.format(i) for i in range(12)))
    subprocess.run([ROOT / "build/release/retrograd", "train", folder / "run.toml"], check=True, capture_output=True)
    fields = gguf.GGUFReader(model).fields
    architecture = fields["general.architecture"].contents()
    window = fields.get(f"{architecture}.attention.sliding_window")
    tokens = window.contents() if window and architecture in ("llama", "phi3") else 96
    ids = llama_cpp.Llama(str(model), vocab_only=True, verbose=False).tokenize(TEXT.read_bytes())[:tokens]
    return compare_logits(name, model, folder / "adapter.gguf", ids)


def compare_toys():
    met = True
    names = subprocess.run([ROOT / "build/release/toy_model"], capture_output=True, check=True, text=True).stdout.split()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            met = compare_toy(name, pathlib.Path(folder)) and met
    return 0 if met else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("adapter", nargs="?")
    parser.add_argument("--toys", action="store_true")
    parser.add_argument("--tokens", type=int, default=96)
    args = parser.parse_args()
    if args.toys:
        return compare_toys()
    if args.adapter is None:
        parser.error("MODEL and ADAPTER, or --toys")
    tokenizer = llama_cpp.Llama(args.model, vocab_only=True, verbose=False)
    ids = tokenizer.tokenize(TEXT.read_bytes())[: args.tokens]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "f32.gguf"
        f32_copy(args.model, copy)
        met = compare_logits("F32 base", copy, args.adapter, ids)
    ours = mean_nll(our_logits(args.model, args.adapter, "f16", ids), ids)
    theirs = mean_nll(their_logits(args.model, args.adapter, "f16", ids), ids)
    print(f"quantized base: mean NLL {ours:.5f} here, {theirs:.5f} there, {abs(ours / theirs - 1):.2%} apart (bar 1 %)")
    met = met and abs(ours / theirs - 1) < 0.01
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
