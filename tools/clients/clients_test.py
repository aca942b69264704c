"""Clients against `doppler serve`: whole and streamed answers, tools, errors. openai, anthropic and ollama are here,
what is above them in the files beside this one. Started by tools/clients/run, which installs them."""

import argparse
import os
import shutil
import subprocess
import sys
import time
import unittest

import anthropic
import ollama
import openai

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "server"))
from frameworks import (Agents, Frameworks, LangChain, LangChainAnthropic, LangChainOllama,  # noqa: E402, F401
                        LiteLLM, PydanticAI)
from served import Served  # noqa: E402

DOPPLER = "doppler"
INSTALLED = ""
MODEL = "storyteller"
MESSAGES = [{"role": "user", "content": "The fox and the crow"}]
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
NAMED = {"type": "function", "function": {"name": "weather"}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
served = None


def begin_server():
    begun = Served(DOPPLER, "--ctx", "1024", "--parallel", "4", "--temp", "0",
                   model=os.path.join(ROOT, "models", "storyteller.gguf"))
    while begun.ask("GET", "/health")[0] != 200:
        assert begun.process.poll() is None
        time.sleep(0.1)
    return begun


class OpenAI(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_chats(self):
        whole = self.client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8, n=2)
        self.assertEqual(len(whole.choices), 2)
        stream = self.client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8, stream=True,
                                                     stream_options={"include_usage": True})
        chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

    def test_tools(self):
        with self.client.chat.completions.stream(model=MODEL, messages=MESSAGES, max_tokens=8, tools=TOOLS,
                                                 tool_choice=NAMED) as stream:
            for _ in stream:
                pass
            calls = stream.current_completion_snapshot.choices[0].message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["weather"])

    def test_completions_and_models(self):
        answer = self.client.completions.create(model=MODEL, prompt=["One", "Two"], max_tokens=2)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])

    def test_responses(self):
        first = self.client.responses.create(model=MODEL, input="The fox", max_output_tokens=6)
        self.assertTrue(first.output_text)
        with self.client.responses.stream(model=MODEL, input="And then?", max_output_tokens=6,
                                          previous_response_id=first.id) as stream:
            events = list(stream)
        self.assertEqual((events[0].type, events[-1].type), ("response.created", "response.incomplete"))
        self.assertGreater(events[-1].response.usage.input_tokens, first.usage.input_tokens)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="none", messages=MESSAGES)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model=MODEL, messages=MESSAGES, temperature=-1)
        self.assertIn("temperature", str(caught.exception))
        with self.assertRaises(openai.BadRequestError):
            self.client.embeddings.create(model=MODEL, input="x")


class Anthropic(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=served.url, api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_messages(self):
        whole = self.client.messages.create(model=MODEL, max_tokens=8, messages=MESSAGES, system="Be brief.")
        self.assertEqual(whole.stop_reason, "max_tokens")
        with self.client.messages.stream(model=MODEL, max_tokens=8, messages=MESSAGES, system="Be brief.") as stream:
            text = "".join(stream.text_stream)
            self.assertEqual(stream.get_final_message().usage.output_tokens, 8)
        self.assertEqual(text, whole.content[0].text)
        self.assertGreater(self.client.messages.count_tokens(model=MODEL, messages=MESSAGES).input_tokens, 3)

    def test_tools(self):
        tools = [{"name": "weather", "input_schema": SCHEMA}]
        choice = {"type": "tool", "name": "weather"}
        with self.client.messages.stream(model=MODEL, max_tokens=8, messages=MESSAGES, tools=tools,
                                         tool_choice=choice) as stream:
            for _ in stream:
                pass
            blocks = [event for event in stream.current_message_snapshot.content if event.type == "tool_use"]
        self.assertEqual([block.name for block in blocks], ["weather"])

    def test_errors(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(model="none", max_tokens=8, messages=MESSAGES)


class Ollama(unittest.TestCase):
    def setUp(self):
        self.client = ollama.Client(host=served.url)

    def test_chat_and_generate(self):
        options = {"num_predict": 8}
        whole = self.client.chat(MODEL, MESSAGES, options=options)
        pieces = list(self.client.chat(MODEL, MESSAGES, options=options, stream=True))
        self.assertEqual("".join(piece.message.content for piece in pieces), whole.message.content)
        self.assertEqual(pieces[-1].eval_count, 8)
        self.assertTrue(self.client.generate(MODEL, "The fox", options=options).response)

    def test_models_and_errors(self):
        self.assertEqual([model.model for model in self.client.list().models], [MODEL])
        self.client.show(MODEL)
        self.assertEqual(self.client.ps().models[0].model, MODEL)
        with self.assertRaises(ollama.ResponseError):
            self.client.chat("none", MESSAGES)


class Programs(unittest.TestCase):
    """Clients that have a program of their own here."""

    def run_program(self, *command):
        done = subprocess.run([*command, served.url], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_instructor(self):
        self.run_program(f"{INSTALLED}/instructor/bin/python", "-B", f"{ROOT}/tools/clients/with_instructor.py")

    @unittest.skipUnless(shutil.which("npm"), "npm is not installed")
    def test_npm(self):
        self.run_program("node", f"{ROOT}/tools/clients/clients.mjs", f"{INSTALLED}/npm")

    @unittest.skipUnless(shutil.which("go"), "Go is not installed")
    def test_ollama_go(self):
        self.run_program(f"{INSTALLED}/ollama_go")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--doppler", required=True, type=os.path.abspath)
    options.add_argument("--installed", required=True, type=os.path.abspath)
    options.add_argument("tests", nargs="*")
    given = options.parse_args()
    DOPPLER, INSTALLED = given.doppler, given.installed
    served = begin_server()
    Frameworks.url = served.url
    try:
        unittest.main(argv=[sys.argv[0], *given.tests], warnings="ignore")  # of sockets that clients leave open
    finally:
        served.end()
