"""Writes the seed corpus of the GGUF fuzzer: small files that together use every branch of the format.

    python3 tools/references/gguf_corpus.py tests/fuzz/corpus/gguf
"""

import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack("<" + PACK[kind], value)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key, kind, values):
    items = b"".join(scalar(kind, value) for value in values)
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + items


def model(entries=(), tensors=(), version=3, alignment=32):
    """`tensors` are (name, dims, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries)
    data = b""
    for name, dims, kind, payload in tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += payload + bytes(-len(payload) % alignment)
    return head + bytes(-len(head) % alignment) + data if tensors else head


SCALARS = [entry(f"k{kind}", kind, 1) for kind in PACK]
IQ_TYPES = {16: 66, 17: 74, 18: 98, 19: 50, 21: 110, 22: 82, 23: 136, 29: 56}  # bytes of a block
SEEDS = {
    "empty": model(),
    "version2": model([entry("general.architecture", STRING, "llama")], version=2),
    "scalars": model(SCALARS),
    "arrays": model([array(f"a{kind}", kind, [1, 0]) for kind in PACK]),
    "strings": model([array("tokenizer.ggml.tokens", STRING, ["<s>", "", "a b"])]),
    "f32": model(tensors=[("blk.0.attn_q.weight", [2, 3], 0, bytes(range(24)))]),
    "blocks": model(tensors=[("q4_0", [32], 2, bytes(range(18))), ("q8_0", [32, 2], 8, bytes(68)), ("f16", [3], 1, bytes(6))]),
    "k_quants": model(tensors=[("q4", [256], 12, bytes(range(144))), ("q6", [256], 14, bytes(range(210)))]),
    "iq_quants": model(tensors=[(f"t{kind}", [256], kind, bytes(range(size))) for kind, size in IQ_TYPES.items()]),
    "few_bits": model(tensors=[("mxfp4", [32], 39, bytes(17)), ("nvfp4", [64], 40, bytes(36)), ("tq1", [256], 34, bytes(54))]),
    "aligned8": model([entry("general.alignment", U32, 8)], [("a", [1], 0, bytes(4)), ("b", [], 0, bytes(4))], alignment=8),
    "split": model([entry("split.no", U16, 0), entry("split.count", U16, 2), entry("split.tensors.count", I32, 1)]),
    "unknown_type": model(tensors=[("w", [4], 255, bytes(16))]),
    "nested": model([text("deep") + struct.pack("<IIQIQ", ARRAY, ARRAY, 1, ARRAY, 1)]),
    "huge_counts": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for name, content in SEEDS.items():
        (folder / f"{name}.gguf").write_bytes(content)
