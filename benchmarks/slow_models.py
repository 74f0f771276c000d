"""A stand-in for a provider of models: OpenAI's protocol on loopback, with realistic delays.

    python benchmarks/slow_models.py --port 9000 --strong 1.5 --cheap 0.6

A message begins with `u7t3 garden`: user 7 says something about the garden in turn 3. Replies begin
with the mark of what they answer. The roles get answers that fit: the splitter sorts by the word
behind the mark, readers quote the first message of each topic. `GET /calls` has, of each call,
whose it was, when it began and ended (by the machine's monotonic clock), and how many prompts had
marks of two users.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator
from math import log
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

SPREAD = 0.5
"""The sigma of the lognormal delays: one call in a hundred takes 3.2 times the median."""
WORDS = 60
"""Words of a reply; each is one part of a stream."""


def sort_messages(said: str) -> str:
    """The answer of a splitter: a topic for each word that stands behind a mark."""
    known = dict(re.findall(r"^\[(t\d+)\] \(\w+\) (\w+)", said, re.MULTILINE))
    homes = {
        name: f'topic="existing_active" topic_id="{topic}"'
        if f"[{topic}] (active)" in said
        else f'topic="existing_inactive" topic_id="{topic}"'
        for topic, name in known.items()
    }
    rows = [
        f'<assignment msg_id="m{number}-m{int(number) + 1}"'
        f' {homes.get(word) or f"""topic="new" topic_name="{word}" """}></assignment>'
        for number, word in re.findall(r"^\[m(\d+)\] user: u\d+t\d+ (\w+)", said, re.MULTILINE)
    ]
    return f"<topic_split>{''.join(rows)}</topic_split>"


def read_topics(said: str) -> str:
    """The answer of a reader: the first message of each topic."""
    found = re.findall(r"=== Topic (t\d+)[^=]*===.*?\[(m\d+)\]", said, re.DOTALL)
    return "".join(
        f'<topic_result topic="{topic}"><referenced_messages>{message}</referenced_messages>'
        "<relevance_score>0.6</relevance_score><summary>It was said.</summary></topic_result>"
        for topic, message in found
    )


def write_brief(said: str) -> str:
    """The answer of a brief writer: the newest word behind a mark is the name."""
    name = re.findall(r"user: u\d+t\d+ (\w+)", said)[-1:] or ["Talk"]
    return f"<topic_brief><name>{name[0]}</name><brief>All about {name[0]}.</brief></topic_brief>"


def answer(messages: list[dict[str, Any]]) -> str:
    """What the model of a role says to a prompt."""
    system = str(messages[0]["content"])
    said = "\n".join(str(m["content"]) for m in messages[1:])
    match system[:16]:
        case "You sort message":
            return sort_messages(said)
        case "You read topics ":
            return read_topics(said)
        case "You write the br":
            return write_brief(said)
        case "You look back on":
            return "<reflection></reflection>"
    newest = [str(m["content"]) for m in messages if m["role"] == "user"][-1]
    mark = re.search(r"\bu\d+t\d+\b", newest)
    return f"{mark[0] if mark else 'Nothing'}: " + "noted and kept in mind, " * (WORDS // 5)


class Models:
    """Answers calls, each after a delay of its own, and remembers when."""

    def __init__(self, medians: dict[str, float], seed: int = 0) -> None:
        """With the median of the seconds that a call takes, by model."""
        self._medians, self._chance = medians, random.Random(seed)
        self._calls: list[tuple[int, float, float]] = []
        self._mixed = 0

    async def complete(self, request: Request) -> Response:
        """Answer one call, in a stream if it asks for one."""
        began = time.monotonic()
        asked = await request.json()
        model, messages = asked["model"], asked["messages"]
        users = set(re.findall(r"\bu(\d+)t\d+\b", json.dumps(messages)))
        self._mixed += len(users) > 1
        user = int(min(users, default="-1"))
        delay = self._chance.lognormvariate(log(self._medians[model]), SPREAD)
        text = answer(messages)
        frame = {"id": "c", "created": 1, "model": model}
        if asked.get("stream"):
            parts = self._stream(text, delay, frame, (user, began))
            return StreamingResponse(parts, media_type="text/event-stream")
        await asyncio.sleep(delay)
        self._calls.append((user, began, time.monotonic()))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
        choices = [{**choice, "finish_reason": "stop"}]
        return JSONResponse(
            {**frame, "object": "chat.completion", "choices": choices, "usage": usage}
        )

    async def _stream(
        self, text: str, delay: float, frame: dict[str, Any], call: tuple[int, float]
    ) -> AsyncIterator[str]:
        """A third of the delay before the first part, the rest between the parts."""
        frame = {**frame, "object": "chat.completion.chunk"}
        words = re.findall(r"\S+\s*", text)
        await asyncio.sleep(delay / 3)
        for word in words:
            choice = {"index": 0, "delta": {"role": "assistant", "content": word}}
            yield f"data: {json.dumps({**frame, 'choices': [choice]})}\n\n"
            await asyncio.sleep(delay * 2 / 3 / len(words))
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._calls.append((*call, time.monotonic()))
        yield f"data: {json.dumps({**frame, 'choices': [last]})}\n\ndata: [DONE]\n\n"

    async def tell_calls(self, request: Request) -> Response:
        """All calls so far."""
        return JSONResponse({"calls": self._calls, "mixed": self._mixed})


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9_000)
    parser.add_argument("--strong", type=float, default=1.5, help="median seconds of a reply")
    parser.add_argument("--cheap", type=float, default=0.6, help="median seconds of a reader")
    given = parser.parse_args()
    models = Models({"strong": given.strong, "cheap": given.cheap})
    routes = [
        Route("/v1/chat/completions", models.complete, methods=["POST"]),
        Route("/calls", models.tell_calls),
    ]
    uvicorn.run(Starlette(routes=routes), port=given.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
