"""Prints the grids of src/tensor/codebooks.cc, as the `gguf` package has them.

    python3 tools/references/codebooks.py      # needs: pip install gguf numpy

A grid is a set of points of {0 … levels - 1}^n in rising order (the first coordinate counts least), so a bit for each
possible point says all: a hexadecimal digit for four of them, the lowest bit first.
"""

from gguf import quants


def members(kind):
    kind.init_grid()
    levels = list(kind.grid_map)
    ranks = [
        sum(levels.index(int(value)) * len(levels) ** i for i, value in enumerate(point))
        for point in kind.grid.reshape(kind.grid_shape)
    ]
    assert ranks == sorted(set(ranks))
    possible = len(levels) ** kind.grid_shape[1]
    there = set(ranks)
    digits = [sum((start + i in there) << i for i in range(4)) for start in range(0, possible, 4)]
    return "".join(f"{digit:x}" for digit in digits)


def main():
    for kind in (quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ1_S, quants.IQ3_XXS, quants.IQ3_S):
        text = members(kind)
        print(kind.__name__)
        for start in range(0, len(text), 100):
            print(f'    "{text[start : start + 100]}"')


if __name__ == "__main__":
    main()
