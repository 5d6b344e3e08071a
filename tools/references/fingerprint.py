"""Prints the fingerprint of GGUF models as src/gguf/reader.h defines it, read by the `gguf` package.

    python3 tools/references/fingerprint.py MODEL.gguf …        # needs: pip install gguf numpy xxhash

An independent reading of what this program reads and writes: for a file that the package cannot read, or reads
otherwise than we do, the number is another one. Split models are not put together.
"""

import struct
import sys

import xxhash
from gguf import GGUFReader


def is_layout_key(name):
    return name.startswith(("split.", "GGUF.")) or name == "general.alignment"


def fingerprint(path):
    reader = GGUFReader(path)
    fields = [field for field in reader.fields.values() if not is_layout_key(field.name)]
    hasher = xxhash.xxh3_128()
    hasher.update(struct.pack("<QQ", len(fields), len(reader.tensors)))
    for field in fields:
        hasher.update(b"".join(part.tobytes() for part in field.parts))
    for tensor in reader.tensors:
        name = tensor.name.encode()
        dims = [int(dim) for dim in tensor.shape] + [1] * (4 - len(tensor.shape))
        hasher.update(struct.pack("<Q", len(name)) + name)
        hasher.update(struct.pack("<4QI", *dims, tensor.tensor_type.value))
        hasher.update(tensor.data.tobytes())
    return hasher.hexdigest()


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(fingerprint(path), path)
