"""Writes tests/data/pretokenizer_ids.json: what llama.cpp makes of some texts under each pre-tokenizer's name.

    python3 tools/references/pretokenizer_ids.py OUT FOLDER NAME…

FOLDER holds ggml-vocab-qwen35.gguf and ggml-vocab-gemma-4.gguf, which are read with tokenizer.ggml.pre (of the
second also tokenizer.ggml.model) overridden by each NAME; needs llama-cpp-python 0.3.36. Of the ids of a text, as
little-endian 32-bit numbers, a 32-bit FNV-1a hash is kept.
"""

import json
import pathlib
import struct
import sys

import llama_cpp

CHARACTER_VOCABULARY = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")

TEXTS = [
    "It's what they've SAID: we'll see, I'D say, YOU'RE 'thinking' o'clock, don'T, l'été, 'S 'Re ''ll",
    "Numbers: 1 12 123 1234 12345 123456 1234567, 0.5 3,000,000 ½ Ⅷ ٣٤٥ 12٣٤ x1y22z333w4444v ,77 .8888 a 55 b  666",
    "camelCase PascalCase ABCdef ABC XMLHttpRequest eÉé ÉÀé Ünïcödé ÑandÚ iPhone McDonald's O'NEILL'S ǅungla ʰa",
    "def f(x):\n    if x >= 10:\n\t\treturn x ** 2  # squared\n    return [x[i] for i in range(-3, 7)]\n\n\n\n",
    "{\"name\": \"get\", \"args\": [1, 2, null]}\r\n\r\n/path/to/file.txt //comment\n\\n $HOME/%s `tick` ~~~ ^^ <=> +-|",
    "e\u0301 n\u0303o \u0301x a\u0300\u0301b \u0928\u092e\u0938\u094d\u0924\u0947 \u09ac\u09be\u0982\u09b2\u09be !\u0301? \n\u0301 1\u0301",
    "Съешь ещё этих мягких французских булок, да ВЫПЕЙ чаю. Ἀθῆναι ԱՐԵՎ ⲁⲃ Ꭰꭰ ᲐაႠ 𐐀𐐨 ﬁne ＡＢｃ Ω K ℓ",
    "我能吞下玻璃而不伤身体。日本語のテキスト、カタカナー。한국어 문장입니다. ㄅㄆㄇ ㄱㄴ 㐀㐁𠀀𠀁豈更 混ABC合abc123字",
    "！…“quoted”‘x’—：；，、。〈《「」》〉︰﹏ ％＃ ～ ،۔। «a» „b“ ¿qué? ¡sí! ·…",
    "ไทยไม่มีช่องว่าง ພາສາລາວ ភាសាខ្មែរ မြန်မာ ꩠꩡ ꧠ ᄀᄁ ｱｲｳ ⼀⼁ مرحبا بالعالم שלום עולם",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇨🇭 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 ☃ ©2024 ™x №5 °C ±1 ×2 √9 €10 ¥20",
    "a\u00a0b\u2003c\u3000d\u200be\u180ef\ufeffg x\u2028y\u2029z\u0085w \u00a0 x \u3000\u3000y \u0085\n\u0085 \u2003",
    "tabs\t\t\tand spaces" + " " * 40 + "and\n \n \n  \n   mixed \t \nends   \n",
    "----====****#### ... !!! ?!? \n\n!!!\n\n ?\r\n\r\nx /\n/ a/b\r\n(\n) \"\n\n\" '\n",
    "<sentinel:12> <sentinel:x> IMGIMGABZ IMGIMGABCDEZ IMGIMGZ     four    two  ",
    " " * 700 + "x" + " " * 1030 + "\n" + " " * 300 + "\t\n\n" + " " * 17 + "y" + "\n" * 9 + " " * 515,
    "a b c d e f word w o r d s in I a I'm x\u0301 y\u0301z A B",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB ccccCCCCccccCCCC",
    "\u0378\u0379 \ue000 \U000e0001 \ufffd \u0001\u0002 \x7f a\u00adb \u061c \ufa6e\ufa6f x\ufada 1\u0378",
    "▁literal▁marks ▁ here ▁▁▁ \n\n\n\n▁\n",
    " lead", "trail ", "\n", " \n ", "",
]


def fnv1a(ids):
    value = 0x811C9DC5
    for byte in struct.pack(f"<{len(ids)}i", *ids):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def main():
    out, folder, *names = sys.argv[1:]
    hashes = {}
    for name in names:
        characters = name in CHARACTER_VOCABULARY
        file = "ggml-vocab-gemma-4.gguf" if characters else "ggml-vocab-qwen35.gguf"
        overrides = {"tokenizer.ggml.pre": name}
        if characters:
            overrides["tokenizer.ggml.model"] = "gpt2"
        model = llama_cpp.Llama(str(pathlib.Path(folder) / file), vocab_only=True, kv_overrides=overrides, verbose=False)
        hashes[name] = [fnv1a(model.tokenize(text.encode(), add_bos=False, special=False)) for text in TEXTS]
    with open(out, "w", encoding="ascii") as file:
        json.dump({"texts": TEXTS, "hashes": hashes}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
