#!/usr/bin/env python3
"""Holds an adapter trained here against a stock llama.cpp that loads it.

  pip install llama-cpp-python==0.3.36 numpy     (in a virtual environment; builds llama.cpp)
  ./dev build retrograd logits
  tools/interop/compare.py MODEL ADAPTER [--tokens 96]

On an F32 copy of the base, made by llama.cpp's own quantizer, with the adapter: relative L2 distance of all logits,
with f32 and with f16 keys and values (bars 1e-3, 1e-2). On the quantized base, where llama.cpp rounds activations
to 8 bits: relative difference of the mean negative log-likelihood (bar 1 %). Exits 1 when a bar is missed.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("adapter")
    parser.add_argument("--tokens", type=int, default=96)
    args = parser.parse_args()
    tokenizer = llama_cpp.Llama(args.model, vocab_only=True, verbose=False)
    ids = tokenizer.tokenize(TEXT.read_bytes())[: args.tokens]
    met = True
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "f32.gguf"
        f32_copy(args.model, copy)
        for kv, bar in (("f32", 1e-3), ("f16", 1e-2)):
            ours = our_logits(copy, args.adapter, kv, ids)
            distance = relative_distance(ours, their_logits(copy, args.adapter, kv, ids))
            base = relative_distance(ours, their_logits(copy, None, kv, ids))
            print(f"F32 base, {kv} keys and values: logits apart {distance:.2e} (bar {bar:.0e}); without the adapter {base:.2e}")
            met = met and distance < bar < base
    ours = mean_nll(our_logits(args.model, args.adapter, "f16", ids), ids)
    theirs = mean_nll(their_logits(args.model, args.adapter, "f16", ids), ids)
    print(f"quantized base: mean NLL {ours:.5f} here, {theirs:.5f} there, {abs(ours / theirs - 1):.2%} apart (bar 1 %)")
    met = met and abs(ours / theirs - 1) < 0.01
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
