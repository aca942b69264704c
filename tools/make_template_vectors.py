#!/usr/bin/env python3
"""Makes tests/data/template_vectors.json, the oracle of src/tokenizer/template.

Every template of tests/data/templates/*.jinja is rendered by jinja2 with every conversation below, in the
environment that Hugging Face transformers uses; so is every snippet of tests/data/templates/snippets.txt.
With arguments (template files) the vectors of those go to standard output instead, to check templates that may
not be committed: tools/make_template_vectors.py *.jinja > x.json; DOPPLER_TEMPLATE_VECTORS=x.json chat_template_test
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2025, 3, 7, 9, 5, 2)
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks what the model wrote; prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "City, \"quoted\" & <tagged>"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 1.5e10}}, "required": ["place"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Søk på nettet – 検索", "parameters": {"type": "object", "properties": {
        "query": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"safe": {"type": "boolean"}}}}}}}
EMPTY_TOOL = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {}}}


def call(name, arguments, identifier="call00001"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*pairs, **extra):
    messages = [m if isinstance(m, dict) else {"role": m[0], "content": m[1]} for m in pairs]
    return {"messages": messages, "add_generation_prompt": True, **extra}


CONVERSATIONS = {
    "one": chat(("user", "Hello, who are you?")),
    "system": chat(("system", "You are terse."), ("user", "Hi"), ("assistant", "Hi."), ("user", "More?")),
    "no_prompt": chat(("user", "Hi"), ("assistant", "Ho"), add_generation_prompt=False),
    "spaces": chat(("system", "  \n"), ("user", "  two  spaces \n\n"), ("assistant", "\n\tanswer\n"), ("user", " ")),
    "unicode": chat(("user", "Grüße, 世界! 🦊 \u2028 İ\u00a0x"), ("assistant", "naïve “quotes” \\ \" '")
                    , ("user", "ΑΒΓ привет")),
    "empty": chat(("user", ""), ("assistant", ""), ("user", "")),
    "nothing": chat(),
    "two_users": chat(("user", "a"), ("user", "b")),
    "odd_role": chat(("critic", "Hm."), ("user", "x")),
    "thinking": chat(("user", "2+2?"), ("assistant", "<think>\nAdd.\n</think>\n\n4"), ("user", "And 3+3?"),
                     {"role": "assistant", "reasoning_content": "Add again.", "content": "6"}, ("user", "Good."),
                     enable_thinking=True),
    "no_thinking": chat(("system", "Short."), ("user", "2+2? /no_think"), enable_thinking=False),
    "thinking_field": chat(("user", "2+2?"), {"role": "assistant", "thinking": "Add.", "content": "4"},
                           ("user", "So?"), reasoning_effort="high"),
    "tools": chat(("system", "Use tools."), ("user", "Weather in Oslo?"), tools=[WEATHER, SEARCH, EMPTY_TOOL]),
    "tools_plain": chat(("user", "Weather in Oslo?"), tools=[WEATHER]),
    "tool_call": chat(("user", "Weather in Oslo & Bergen?"),
                      {"role": "assistant", "content": "", "tool_calls": [
                          call("get_weather", {"place": "Oslo", "days": 2, "deep": {"list": [1, 2.5, None, True]}})]},
                      {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"temp\": -3}"},
                      ("assistant", "It is -3."), ("user", "Thanks"), tools=[WEATHER]),
    "tool_calls_two": chat(("system", "Be exact."), ("user", "Both"),
                           {"role": "assistant", "content": None, "tool_calls": [
                               call("get_weather", {"place": "Oslo"}),
                               call("search", {"query": ["a", "b"]}, "call00002")]},
                           {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "cold"},
                           {"role": "tool", "name": "search", "tool_call_id": "call00002", "content": "found"},
                           tools=[WEATHER, SEARCH]),
    "tool_text_arguments": chat(("user", "Go"), {"role": "assistant", "tool_calls": [
        call("search", "{\"query\": [\"x\"]}")]}, {"role": "tool", "content": "ok", "tool_call_id": "call00001"}),
    "parts": chat({"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "image"},
                                               {"type": "text", "text": " this?"}]}),
    "documents": chat(("user", "Sum up"), documents=[{"title": "One", "text": "Text one"},
                                                     {"title": "Two", "text": "Text\ntwo", "id": 7}]),
    "developer": chat(("developer", "Speak like a pirate."), ("user", "Hi"), model_identity="You are Doppler."),
}

SNIPPET_VARIABLES = {
    "n": 7, "f": 2.5, "big": 1e16, "small": 1.5e-7, "s": "Hello World", "u": "Grüße 世界", "e": "", "yes": True,
    "nil": None, "xs": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "lines": "one\ntwo\n\nthree\n",
    "d": {"b": 1, "a": [1, {"x": None}], "C": "text"}, "items_dict": {"items": 5, "get": 6},
    "rows": [{"k": "x", "v": 1, "on": True}, {"k": "y", "v": 3, "on": False}, {"k": "z", "v": 2, "sub": {"p": [9]}}],
    "quote": "it's \"so\" <b>&\\ \t", "pad": "  x y  ", "nested": [[1, 2], [3, [4]]],
}


def render(env, source, variables):
    try:
        return env.from_string(source).render(
            **{"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None,
               "add_generation_prompt": True, "messages": [], **variables})
    except Exception:  # every failure of the oracle is one of ours too
        return None


def main():
    env = environment()
    folder = ROOT / "tests/data/templates"
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(folder.glob("*.jinja"))
    templates = {str(path) if sys.argv[1:] else path.stem: path.read_bytes().decode() for path in files}
    snippets = []
    if not sys.argv[1:]:
        for line in (folder / "snippets.txt").read_text().splitlines():
            if line and not line.startswith("##"):
                snippets.append(json.loads(line) if line.startswith('"') else line)
    vectors = {
        "templates": templates,
        "conversations": CONVERSATIONS,
        "renders": [[name, key, render(env, source, variables)]
                    for name, source in templates.items() for key, variables in CONVERSATIONS.items()],
        "snippet_variables": SNIPPET_VARIABLES,
        "snippets": [[source, render(env, source, SNIPPET_VARIABLES)] for source in snippets],
    }
    text = json.dumps(vectors, ensure_ascii=False, separators=(",", ":"))
    if sys.argv[1:]:
        print(text)
    else:
        (ROOT / "tests/data/template_vectors.json").write_text(text.replace("],[", "],\n[") + "\n")
        failures = sum(row[2] is None for row in vectors["renders"])
        print(f"{len(vectors['renders'])} renders ({failures} of them errors), {len(snippets)} snippets")


main()
