"""Prints XXH3-128 over all values of GGUF models, decoded to f32 by the `gguf` package, tensor by tensor in table order.

    python3 tools/references/decoded_hash.py MODEL.gguf …        # needs: pip install gguf numpy xxhash
"""

import sys

import numpy as np
import xxhash
from gguf import GGUFReader, quants

ROWS = 8192  # decoded at once


def decoded_hash(path):
    hasher = xxhash.xxh3_128()
    for tensor in GGUFReader(path).tensors:
        data = np.atleast_2d(tensor.data)
        for start in range(0, len(data), ROWS):
            values = quants.dequantize(data[start : start + ROWS], tensor.tensor_type)
            hasher.update(np.ascontiguousarray(values, dtype="<f4").tobytes())
    return hasher.hexdigest()


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(decoded_hash(path), path)
