"""Tests of the frameworks above the clients: openai-agents, LangChain, LiteLLM, Pydantic AI. Part of clients_test.py,
which begins the server. Arguments of calls are of two places, so that a model of 3M parameters keeps to them."""

import asyncio
import json
import os
import unittest
from typing import Literal

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no look-up of prices

import agents  # noqa: E402
import litellm  # noqa: E402
import openai  # noqa: E402
import pydantic_ai  # noqa: E402
from langchain_anthropic import ChatAnthropic  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langchain_ollama import ChatOllama  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402
from pydantic import BaseModel, ConfigDict  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

PLACES = ["Rome", "Paris"]
MODEL = "storyteller"
SCHEMA = {"title": "weather", "description": "The weather of a place.", "type": "object",
          "properties": {"place": {"type": "string", "enum": PLACES}}, "required": ["place"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "weather", "description": SCHEMA["description"], "parameters": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "weather"}}
QUESTION = [{"role": "user", "content": "Is it warm in Rome?"}]
litellm.suppress_debug_info = True
MOST = 200  # tokens: enough for blanks that a grammar lets this model write between arguments
ARGUMENTS = [{"place": place} for place in PLACES]


class Frameworks(unittest.TestCase):
    url = None  # of the server


class Agents(Frameworks):
    """A call of a tool, its result told to the model, an answer; over both of OpenAI's APIs. An answer that reaches the
    limit of tokens is an error to this client: "stop" ends it."""

    def run_agent(self, make_model, is_streamed):
        asked = []

        async def weather(_, arguments):
            asked.append(json.loads(arguments))
            return "It is warm."

        tool = agents.FunctionTool(name="weather", description=SCHEMA["description"], params_json_schema=SCHEMA,
                                   on_invoke_tool=weather)

        async def run():
            async with openai.AsyncOpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0) as client:
                agent = agents.Agent(name="A", instructions="Be brief.", tools=[tool], model=make_model(MODEL, client),
                                     model_settings=agents.ModelSettings(tool_choice="weather", max_tokens=MOST,
                                                                          extra_body={"stop": [",", "."]}))
                if not is_streamed:
                    return (await agents.Runner.run(agent, QUESTION[0]["content"])).final_output, None
                result = agents.Runner.run_streamed(agent, QUESTION[0]["content"])
                deltas = [event.data.delta async for event in result.stream_events()
                          if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
                return result.final_output, "".join(deltas)

        answer, streamed = asyncio.run(run())
        self.assertEqual(len(asked), 1)
        self.assertIn(asked[0], ARGUMENTS)
        self.assertTrue(answer)
        if is_streamed:
            self.assertEqual(answer, streamed)

    def test_chat_completions(self):
        self.run_agent(agents.OpenAIChatCompletionsModel, False)
        self.run_agent(agents.OpenAIChatCompletionsModel, True)

    def test_responses(self):
        self.run_agent(agents.OpenAIResponsesModel, False)
        self.run_agent(agents.OpenAIResponsesModel, True)


class LangChain(Frameworks):
    def model(self, **options):
        return ChatOpenAI(base_url=self.url + "/v1", api_key="none", model=MODEL, max_retries=0, max_tokens=MOST, **options)

    def test_chats(self):
        whole = self.model().invoke("The fox and the crow")
        pieces = list(self.model(stream_usage=True).stream("The fox and the crow"))
        self.assertEqual("".join(piece.content for piece in pieces), whole.content)
        self.assertEqual(whole.usage_metadata["output_tokens"], MOST)
        self.assertTrue(OpenAI(base_url=self.url + "/v1", api_key="none", model=MODEL, max_tokens=4).invoke("The fox"))

    def test_tools(self):
        bound = self.model().bind_tools([TOOL], tool_choice="weather")
        answer = bound.invoke(QUESTION)
        self.assertIn(answer.tool_calls[0]["args"], ARGUMENTS)
        joined = None
        for piece in bound.stream(QUESTION):
            joined = piece if joined is None else joined + piece
        self.assertEqual([call["args"] for call in joined.tool_calls], [call["args"] for call in answer.tool_calls])
        result = ToolMessage("It is warm.", tool_call_id=answer.tool_calls[0]["id"])
        self.assertTrue(self.model().invoke([HumanMessage(QUESTION[0]["content"]), answer, result]).content)

    def test_structured_output(self):
        for method in ("json_schema", "function_calling"):
            self.assertIn(self.model().with_structured_output(SCHEMA, method=method).invoke(QUESTION), ARGUMENTS)


class LangChainOllama(Frameworks):
    def model(self, **options):
        return ChatOllama(base_url=self.url, model=MODEL, num_predict=MOST, temperature=0, validate_model_on_init=True,
                          **options)

    def test_chats(self):
        whole = self.model().invoke("The fox and the crow")
        pieces = list(self.model().stream("The fox and the crow"))
        self.assertEqual("".join(piece.content for piece in pieces), whole.content)
        self.assertEqual(whole.usage_metadata["output_tokens"], MOST)

    def test_structured_output(self):
        for method in ("json_schema", "json_mode"):
            parsed = self.model().with_structured_output(SCHEMA, method=method).invoke(QUESTION)
            if method == "json_schema":
                self.assertIn(parsed, ARGUMENTS)

    def test_tools_and_their_results(self):
        call = {"name": "weather", "args": {"place": "Rome"}, "id": "1"}
        begun = [HumanMessage(QUESTION[0]["content"]), AIMessage("", tool_calls=[call]), ToolMessage("Warm.", tool_call_id="1")]
        self.assertTrue(self.model().bind_tools([TOOL]).invoke(begun).response_metadata["done"])


class LangChainAnthropic(Frameworks):
    def model(self, **options):
        return ChatAnthropic(base_url=self.url, api_key="none", model=MODEL, max_retries=0, max_tokens=MOST, temperature=0,
                             **options)

    def test_chats(self):
        whole = self.model().invoke("The fox and the crow")
        pieces = list(self.model().stream("The fox and the crow"))
        self.assertEqual("".join(piece.text for piece in pieces), whole.text)
        self.assertEqual(whole.usage_metadata["output_tokens"], MOST)

    def test_tools_and_their_results(self):
        answer = self.model().bind_tools([TOOL], tool_choice="weather").invoke(QUESTION)
        self.assertIn(answer.tool_calls[0]["args"], ARGUMENTS)
        result = ToolMessage("It is warm.", tool_call_id=answer.tool_calls[0]["id"])
        self.assertTrue(self.model().bind_tools([TOOL]).invoke([HumanMessage(QUESTION[0]["content"]), answer, result]).text)

    def test_structured_output(self):
        self.assertIn(self.model().with_structured_output(SCHEMA).invoke(QUESTION), ARGUMENTS)


class PydanticAI(Frameworks):
    class Weather(BaseModel):
        model_config = ConfigDict(extra="forbid")

        place: Literal["Rome", "Paris"]

    def agent(self, kind, **options):
        provider = OpenAIProvider(base_url=self.url + "/v1", api_key="none")
        return pydantic_ai.Agent(kind(MODEL, provider=provider), model_settings={"max_tokens": MOST, "temperature": 0}, **options)

    def test_structured_output(self):
        for kind in (OpenAIChatModel, OpenAIResponsesModel):
            for mark in (pydantic_ai.ToolOutput, pydantic_ai.NativeOutput):
                with self.subTest(kind=kind.__name__, mark=mark.__name__):
                    agent = self.agent(kind, output_type=mark(self.Weather))
                    self.assertIn(agent.run_sync(QUESTION[0]["content"]).output.place, PLACES)

    def test_streams(self):
        async def streamed():
            async with self.agent(OpenAIChatModel).run_stream("The fox and the crow") as result:
                return "".join([piece async for piece in result.stream_text(delta=True)])
        self.assertEqual(asyncio.run(streamed()), self.agent(OpenAIChatModel).run_sync("The fox and the crow").output)


class LiteLLM(Frameworks):
    """The same request over each of the three APIs."""

    def ask(self, provider, **options):
        path = "/v1" if provider == "openai" else ""
        return litellm.completion(model=f"{provider}/{MODEL}", api_base=self.url + path, api_key="none", num_retries=0,
                                  messages=QUESTION, max_tokens=MOST, **options)

    def test_chats(self):
        for provider in ("openai", "anthropic", "ollama_chat"):
            with self.subTest(provider):
                whole = self.ask(provider).choices[0].message.content
                pieces = [chunk.choices[0].delta.content or "" for chunk in self.ask(provider, stream=True)]
                self.assertTrue(whole)
                self.assertEqual("".join(pieces), whole)

    def test_tools(self):
        for provider in ("openai", "anthropic"):
            with self.subTest(provider):
                call = self.ask(provider, tools=[TOOL], tool_choice=NAMED).choices[0].message.tool_calls[0]
                self.assertIn(json.loads(call.function.arguments), ARGUMENTS)
                chunks = list(self.ask(provider, tools=[TOOL], tool_choice=NAMED, stream=True))
                call = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls[0]
                self.assertIn(json.loads(call.function.arguments), ARGUMENTS)
