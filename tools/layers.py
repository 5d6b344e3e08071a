#!/usr/bin/env python3
"""Checks that a layer (src/NAME/) includes only what is below it, by the table of CMakeLists.txt.

Prints each forbidden #include as FILE:LINE and exits 1 if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed_arrows() -> dict[str, set[str]]:
    """For each layer, itself and every layer it reaches over the links of retro_layer(...)."""
    below: dict[str, set[str]] = {}
    for name, links in re.findall(r"retro_layer\((\w+) LINK ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text()):
        below[name] = {name}
        for link in re.findall(r"retro_(\w+)", links):
            below[name] |= below[link]
    return below


def forbidden_includes(below: dict[str, set[str]]) -> list[str]:
    found = []
    for source in sorted((ROOT / "src").rglob("*.[ch]*")):
        layer = source.relative_to(ROOT / "src").parts[0]
        if layer not in below:
            found.append(f"{source.relative_to(ROOT)}: src/{layer} is no layer of CMakeLists.txt")
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s+"(\w+)/', line)
            if include and (ROOT / "src" / include[1]).is_dir() and include[1] not in below[layer]:
                found.append(f"{source.relative_to(ROOT)}:{number}: {layer} must not include {include[1]}")
    return found


def main() -> int:
    below = allowed_arrows()
    assert len(below) >= 10, "no table of layers in CMakeLists.txt"
    found = forbidden_includes(below)
    print("\n".join(found) or f"layers: {len(below)} layers, no arrow against the table", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
