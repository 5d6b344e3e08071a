"""Writes tests/data/token_ids.json: the ids that llama.cpp's llama-tokenize gives for some texts.

    python3 tools/references/token_ids.py LLAMA_TOKENIZE OUT NAME=MODEL.gguf …

NAME is what the tests look for in their cache of models. Each text is tokenized twice: `plain`, in which the
characters of control tokens are text, and `control`, in which they are the tokens.
"""

import ast
import json
import subprocess
import sys

TEXTS = [
    "Hello, world!",
    " leading and trailing  ",
    "It's what they've said: we'll SEE, I'D say, YOU'RE 'thinking' o'clock.",
    "In 1789, 3.14159 and 1,000,000 are numbers; so are ½, Ⅷ, ٣٤٥ and 12345678901234567890.",
    "def f(x):\n    if x >= 10:\n\t\treturn x ** 2  # squared\n    return [x[i] for i in range(-3, 7)]\n\n\n\n",
    "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": [1, 2, null]}}\r\n",
    "naïve café, Straße, Ångström, İstanbul, ﬁne, e\u0301 n\u0303",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "我能吞下玻璃而不伤身体。日本語のテキスト、カタカナ。한국어 문장입니다.",
    "नमस्ते दुनिया، مرحبا بالعالم שלום עולם ไทยไม่มีช่องว่าง",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇨🇭 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈",
    "a\u00a0b\u2003c\u3000d\u200be\u180ef\ufeffg",
    "x\u2028y\u2029z\u0085w",
    "----====****####~~~~ ... !!! ?!? <<>> $5 +1 ^2 `code` |pipe|",
    "<table><tr><td>1</td></tr></table> <h1>T</h1> <0x0A> <unk> [multimodal]",
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
    "<bos><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n",
    "<|endoftext|><|endoftext|>a<|endoftext|>",
    "<|im_start<|im_start|>|><start_of_<start_of_turn>turn>",
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "tabs\t\t\tand spaces                                        and\n \n \n  \n   mixed \t \n",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "▁literal▁marks ▁ here ▁▁▁",
    "user",
    " ",
    "\n",
]


def ids_of(program, model, text, *flags):
    command = [program, "-m", model, "--stdin", "--ids", "--no-bos", "--no-escape", "--log-disable", *flags]
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return ast.literal_eval(done.stdout.decode())


def main():
    program, out, *models = sys.argv[1:]
    vocabularies = {}
    for argument in models:
        name, model = argument.split("=", 1)
        vocabularies[name] = {
            "plain": [ids_of(program, model, text, "--no-parse-special") for text in TEXTS],
            "control": [ids_of(program, model, text) for text in TEXTS],
        }
    with open(out, "w", encoding="ascii") as file:
        json.dump({"texts": TEXTS, "vocabularies": vocabularies}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
