"""Writes tests/data/dequantize.json: random blocks of each decodable type with what the `gguf` package decodes them to.

    python3 tools/references/dequantize.py tests/data/dequantize.json      # needs: pip install gguf numpy

`sizes` holds [elements, bytes] of a block of every type the package knows.
"""

import json
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Byte offsets of the binary16 numbers in a block; every other byte may hold anything.
HALVES = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]


def finite_halves(rng, count):
    """Any finite binary16: normal, subnormal and zero, of both signs."""
    bits = rng.integers(0, 1 << 16, count, dtype=np.uint16)
    return np.where((bits & 0x7C00) == 0x7C00, bits & np.uint16(0x83FF), bits).astype(np.uint16)


def random_blocks(rng, name):
    elements, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    count = {1: 64, 32: 6, 256: 3}[elements]
    if name == "F32":
        return rng.standard_normal(count).astype(np.float32).view(np.uint8).reshape(count, size)
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if name == "BF16":
        blocks[:, 1] &= 0xBF  # keeps the exponent below that of infinity
    for offset in HALVES.get(name, []):
        blocks[:, offset : offset + 2] = finite_halves(rng, count).view(np.uint8).reshape(count, 2)
    return blocks


def main():
    rng = np.random.default_rng(20240611)
    cases = []
    for name in TYPES:
        blocks = random_blocks(rng, name)
        values = quants.dequantize(blocks.reshape(1, -1), GGMLQuantizationType[name]).reshape(-1)
        cases.append({"type": name, "blocks": blocks.tobytes().hex(), "values": values.astype("<f4").tobytes().hex()})
    sizes = {kind.name: [kind.value, *size] for kind, size in GGML_QUANT_SIZES.items()}
    with open(sys.argv[1], "w", encoding="ascii") as out:
        json.dump({"sizes": sizes, "cases": cases}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
