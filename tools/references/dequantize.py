"""Writes tests/data/dequantize.json: blocks of each decodable type with what the `gguf` package decodes them to.

    python3 tools/references/dequantize.py tests/data/dequantize.json      # needs: pip install gguf numpy

`sizes` holds [elements, bytes] of a block of every type the package knows; `cases` a few random blocks and their
values; `sweeps` a digest of many blocks, so that every entry of every table is met. Q1_0 and Q2_0, which the package
does not decode, are decoded here as their layout is published in ggml.
"""

import json
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Byte offsets of the binary16 numbers in a block; every other byte may hold anything.
HALVES = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "Q2_K": [80, 82], "Q3_K": [108],
    "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
    "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "Q1_0": [0], "Q2_0": [0],
}
TYPES = [
    "F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K",
    "Q2_K", "Q3_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS",
    "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0",
]
# Types that may be newer than the package: id, elements and bytes of a block.
PUBLISHED = {"Q1_0": [41, 128, 18], "Q2_0": [42, 64, 18]}
SWEPT_BLOCKS = 1024


def finite_halves(rng, count):
    """Any finite binary16: normal, subnormal and zero, of both signs."""
    bits = rng.integers(0, 1 << 16, count, dtype=np.uint16)
    return np.where((bits & 0x7C00) == 0x7C00, bits & np.uint16(0x83FF), bits).astype(np.uint16)


def block_size(name):
    if name in PUBLISHED:
        return PUBLISHED[name][1:]
    return GGML_QUANT_SIZES[GGMLQuantizationType[name]]


def random_blocks(rng, name):
    elements, size = block_size(name)
    count = {1: 64, 32: 6, 64: 4, 128: 3, 256: 3}[elements]
    if name == "F32":
        return rng.standard_normal(count).astype(np.float32).view(np.uint8).reshape(count, size)
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if name == "BF16":
        blocks[:, 1] &= 0xBF  # keeps the exponent below that of infinity
    if name == "IQ1_M":
        blocks[:, 55] &= 0xBF  # the same, in the top nibble of the scale's four
    for offset in HALVES.get(name, []):
        blocks[:, offset : offset + 2] = finite_halves(rng, count).view(np.uint8).reshape(count, 2)
    return blocks


def swept_blocks(name):
    """Bytes of a linear congruential generator; binary16 numbers are 1."""
    size = block_size(name)[1]
    state, drawn = 1, bytearray()
    for _ in range(SWEPT_BLOCKS * size):
        state = (state * 1664525 + 1013904223) % (1 << 32)
        drawn.append(state >> 24)
    blocks = np.frombuffer(bytes(drawn), np.uint8).reshape(SWEPT_BLOCKS, size).copy()
    if name == "IQ1_M":
        blocks[:, 49::2] &= 0x0F  # the scale's nibbles, from the lowest: 0x3c00
        blocks[:, 53] |= 0xC0
        blocks[:, 55] |= 0x30
    for offset in HALVES.get(name, []):
        blocks[:, offset : offset + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    return blocks


def decode(name, blocks):
    """The values of the blocks, as float32."""
    if name not in PUBLISHED:
        return quants.dequantize(blocks.reshape(1, -1), GGMLQuantizationType[name]).reshape(-1).astype("<f4")
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.int8)
    if name == "Q1_0":
        numbers = 2 * bits - 1
    else:
        numbers = bits[:, 0::2] + 2 * bits[:, 1::2] - 1
    return (scale * numbers.astype(np.float32)).reshape(-1)


def digest(values):
    """The sum of the values' bits, each times an odd number of its own, modulo 2^64."""
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    weights = np.arange(bits.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return int((bits * weights).sum(dtype=np.uint64))


def main():
    rng = np.random.default_rng(20240611)
    np.seterr(over="ignore")  # MXFP4's largest scales reach infinity
    cases, sweeps = [], []
    for name in TYPES:
        blocks = random_blocks(rng, name)
        cases.append({"type": name, "blocks": blocks.tobytes().hex(), "values": decode(name, blocks).tobytes().hex()})
        if block_size(name)[0] > 1:
            sweeps.append({"type": name, "digest": str(digest(decode(name, swept_blocks(name))))})
    sizes = {kind.name: [kind.value, *size] for kind, size in GGML_QUANT_SIZES.items()} | PUBLISHED
    with open(sys.argv[1], "w", encoding="ascii") as out:
        json.dump({"sizes": sizes, "cases": cases, "sweeps": sweeps}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
