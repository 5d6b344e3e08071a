"""JSON files of reference numbers: few digits, one list a line, so that a diff can be read."""
import json
import re


def significant(value, digits=9):
    """The number at so many significant digits; nine tell any two float32 apart."""
    return float(f"{value:.{digits}g}")


def write(path, document):
    """Writes the document with lists of numbers kept on one line."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[\s\d.,e+-]+\]", lambda found: "[" + " ".join(found[0][1:-1].split()) + "]", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
