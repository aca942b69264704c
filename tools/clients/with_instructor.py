"""instructor against the server at the address that is its argument: an object out of a call of a tool and out of an
answer after a schema, whole and in pieces."""

import sys
from typing import Literal

import instructor
import openai
from instructor.dsl.partial import PartialLiteralMixin
from pydantic import BaseModel, ConfigDict


class Weather(BaseModel, PartialLiteralMixin):
    model_config = ConfigDict(extra="forbid")  # or this model adds properties to the end of its answer

    place: Literal["Rome", "Paris"]
    is_warm: bool


question = [{"role": "user", "content": "Is it warm in Rome?"}]
openai_client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(openai_client, mode=mode)
    options = {"model": "storyteller", "messages": question, "response_model": Weather, "max_tokens": 200, "max_retries": 0}
    whole = client.chat.completions.create(**options)
    assert whole.place in ("Rome", "Paris"), whole
    pieces = list(client.chat.completions.create_partial(**options))
    assert pieces[-1].model_dump() == whole.model_dump(), (pieces[-1], whole)
