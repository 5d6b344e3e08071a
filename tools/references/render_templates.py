"""What Python's jinja2 makes of chat templates, in the settings in which transformers renders them.

Each `templates/*.jinja` of a llama.cpp `models` folder, and each given GGUF file's own template, over the conversations
of tests/data/conversations.json. Stored are the SHA-256 of the template and, for each conversation, the first 16 digits
of the SHA-256 and the length in bytes of the UTF-8 result, or the error's text.
"""
import argparse
import datetime
import hashlib
import json
import os

import jinja2
from gguf import GGUFReader
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

import numbers_file

CONVERSATIONS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data", "conversations.json")
NOW = datetime.datetime(2024, 7, 26)
SETTINGS = {"bos_token": "<BOS>", "eos_token": "<EOS>"}


class Generation(Extension):
    """`{% generation %}` marks what the assistant wrote; the text within stays as it is, in a scope of its own."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inner"), [], [], body).set_lineno(line)

    def _inner(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """Unlike jinja2's own filter, leaves HTML's characters alone."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def render(environment, source, conversation):
    """[digits of sha256, length], or {error} with the exception's type and text."""
    try:
        text = environment.from_string(source).render(
            messages=conversation["messages"], tools=conversation.get("tools"), documents=None,
            add_generation_prompt=conversation["add_generation_prompt"], **SETTINGS)
    except Exception as error:  # a template may fail in any way Python knows
        return {"error": f"{type(error).__name__}: {error}"}
    encoded = text.encode()
    return [hashlib.sha256(encoded).hexdigest()[:16], len(encoded)]


def read_templates(models_dir, files):
    """Yields (name, source): the folder's files by name, then the GGUF files that have a template."""
    folder = os.path.join(models_dir, "templates")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jinja"):
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                yield name, file.read()
    for path in files:
        field = GGUFReader(path).fields.get("tokenizer.chat_template")
        if field:
            yield os.path.basename(path), field.contents()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models_dir", help="the models folder of llama.cpp's sources")
    parser.add_argument("out", help="JSON file to write")
    parser.add_argument("--gguf", nargs="*", default=[], help="files whose own template is rendered too")
    args = parser.parse_args()
    with open(CONVERSATIONS, encoding="utf-8") as file:
        conversations = json.load(file)
    environment = make_environment()
    templates = {
        name: {"source_sha256": hashlib.sha256(source.encode()).hexdigest(),
               "renderings": {chat["name"]: render(environment, source, chat) for chat in conversations}}
        for name, source in read_templates(args.models_dir, args.gguf)}
    numbers_file.write(args.out, SETTINGS | {"now": NOW.isoformat(), "templates": templates})


if __name__ == "__main__":
    main()
