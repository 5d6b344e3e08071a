"""Renders llama.cpp's chat templates over tests/data/conversations.json with Python's jinja2, set up as the
transformers library sets it up, into tests/data/template_renderings.json.

Usage: render_templates.py [FOLDER_OF_TEMPLATES]   (default ~/.cache/retrograd/llama_models/templates)
Needs: jinja2.
"""

import datetime
import hashlib
import json
import os
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW = datetime.datetime(2026, 1, 15, 9, 30, 0)
BOS, EOS = "<s>", "</s>"


class Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what an assistant says; it changes no byte."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


def render(env, source, conversation):
    try:
        text = env.from_string(source).render(
            messages=conversation["messages"],
            tools=conversation.get("tools"),
            documents=None,
            add_generation_prompt=conversation["add_generation_prompt"],
            bos_token=BOS,
            eos_token=EOS,
        )
    except Exception as error:  # whatever a template raises is an answer, too
        return {"error": f"{type(error).__name__}: {error}"}
    data = text.encode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def main():
    default = "~/.cache/retrograd/llama_models/templates"
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.path.expanduser(default))
    conversations = json.loads((ROOT / "tests/data/conversations.json").read_text())
    env = environment()
    epoch = datetime.datetime(1970, 1, 1)
    result = {"now": int((NOW - epoch).total_seconds()), "bos_token": BOS, "eos_token": EOS, "templates": {}}
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_bytes().decode()
        result["templates"][path.name] = {
            "source_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "renderings": {each["name"]: render(env, source, each) for each in conversations},
        }
    out = ROOT / "tests/data/template_renderings.json"
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
