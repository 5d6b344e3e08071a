"""Writes tests/data/quantize.json: digests of rows as llama.cpp's quantizer encodes them without an importance matrix.

    python3 tools/references/quantize.py tests/data/quantize.json LIBGGML_BASE
        # needs: pip install numpy, and the libggml-base.so of a llama.cpp build (llama-cpp-python brings one)

The rows come from a linear congruential generator, shaped as `KINDS` says; tests/tensor/quantize_test.cc makes the
same. `rows` holds the bytes of one row a type, for a look at what differs.
"""

import ctypes
import json
import sys

import numpy as np

TYPES = {
    "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
}
ROWS, COLUMNS = 24, 512
F = np.float32


class Generator:
    def __init__(self):
        self.state = 1

    def draw(self, count):
        """`count` float32 numbers in [-1, 1]."""
        drawn = np.empty(count, np.int64)
        for i in range(count):
            self.state = (self.state * 1664525 + 1013904223) % (1 << 32)
            drawn[i] = self.state
        signed = np.where(drawn >= 1 << 31, drawn - (1 << 32), drawn)
        return signed.astype(np.int32).astype(F) * F(2.0**-31)


def every(period, at, one, other):
    """`one` at columns i with i % period == at, else `other`."""
    return np.where(np.arange(COLUMNS) % period == at, one, other).astype(F)


KINDS = {
    "uniform": lambda x: x,
    "cubed": lambda x: x * x * x,
    "outliers": lambda x: every(37, 5, x * F(64), x),
    "zeros": lambda x: x * F(0),
    "constant": lambda x: np.full(COLUMNS, x[0], F),
    "subnormal": lambda x: x * F(2.0**-130),
    "smallest": lambda x: np.trunc(x * F(4)) * F(2.0**-149),
    "tiny": lambda x: x * F(2.0**-20),
    "near_zero_groups": lambda x: x * F(2.0**-50),
    "large": lambda x: x * F(2.0**15),
    "positive": lambda x: np.abs(x) + F(0.5),
    "negative": lambda x: -(np.abs(x) + F(0.5)),
    "sparse": lambda x: every(32, 7, x, F(0) * x),
    "halves": lambda x: np.trunc(x * F(16)) * F(0.5),
}


def digest(data):
    """The sum of the bytes, each times an odd number of its own, modulo 2^64."""
    numbers = np.frombuffer(data, np.uint8).astype(np.uint64)
    return str(int((numbers * (np.arange(numbers.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1))).sum()))


def main():
    library = ctypes.CDLL(sys.argv[2])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
    ]

    def encode(name, rows):
        kind, elements, size = TYPES[name]
        out = np.zeros(rows.size // elements * size, np.uint8)
        rows = np.ascontiguousarray(rows, F)
        written = library.ggml_quantize_chunk(kind, rows.ctypes.data, out.ctypes.data, 0, rows.shape[0], COLUMNS, None)
        assert written == out.size
        return out.tobytes()

    generator = Generator()
    digests, shown = {}, {}
    for name, shape in KINDS.items():
        rows = np.stack([shape(generator.draw(COLUMNS)) for _ in range(ROWS)])
        digests[name] = {kind: digest(encode(kind, rows)) for kind in TYPES}
        if name == "uniform":
            shown = {kind: encode(kind, rows[:1]).hex() for kind in TYPES if kind.startswith("Q")}
    with open(sys.argv[1], "w", encoding="ascii") as out:
        json.dump({"digests": digests, "rows": shown}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
