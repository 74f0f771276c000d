"""One talk, held by a client library with an endpoint: what a person does in any chat client.

    python client_talk.py CLIENT URL

Prints the talk as the client has it in the end, a JSON list of roles and texts. It needs that
library alone, so it also runs in an environment of its own. `client_talk.mjs` is the same talk for
libraries of JavaScript.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

MODEL, KEY, CHAT = "topicloom", "none", "c1"
HEADERS = {"X-Chat-Id": CHAT}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="  # noqa: E501
TOOL: dict[str, Any] = {
    "name": "weather_of",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
History = list[Any]
"""What was said, as a library has it."""


class Client(Protocol):
    """A library, as the talk asks it."""

    def say(
        self, history: History, text: str, *, image: str = "", tools: bool = False
    ) -> tuple[History, str, str]:
        """Say something, with an image or tools; the history with the answer, its text and the id
        of the call that it ends with."""
        ...

    def stream(self, history: History, text: str) -> tuple[History, Iterator[str]]:
        """Say something; the history with it, and the pieces of the answer."""
        ...

    def add_reply(self, history: History, text: str) -> History:
        """The history with what there is of an answer."""
        ...

    def give(self, history: History, call: str, result: str) -> tuple[History, str]:
        """Give the result of a call; the history with the answer, and its text."""
        ...


def hold(client: Client) -> list[list[str]]:
    """Hold the talk; returns what the person has before them in the end."""
    _, given_up, _ = client.say([], "Begin.")
    history, begun, _ = client.say([], "Begin.")  # the first answer once more
    assert given_up != begun
    client.say(history, "Go left.")
    history, edited, _ = client.say(history, "Go right.")  # an edit
    history, pieces = client.stream(history, "Count slowly.")
    counted = next(piece for piece in pieces if piece)
    getattr(pieces, "close", bool)()  # stopped
    history = client.add_reply(history, counted)
    history, pieces = client.stream(history, "Go on.")
    gone_on = "".join(pieces)
    history = client.add_reply(history, gone_on)
    history, said, call = client.say(history, "What is the weather?", tools=True)
    history, told = client.give(history, call, "rain, 4°")
    history, seen, _ = client.say(history, "What is on it?", image=PIXEL)
    return [
        *[["user", "Begin."], ["assistant", begun]],
        *[["user", "Go right."], ["assistant", edited]],
        *[["user", "Count slowly."], ["assistant", counted]],
        *[["user", "Go on."], ["assistant", gone_on]],
        *[["user", "What is the weather?"], ["assistant", said]],
        *[["tool", "rain, 4°"], ["assistant", told]],
        *[["user", "What is on it?"], ["assistant", seen]],
    ]


class LangChainClient:
    """A chat model of LangChain's."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def say(
        self, history: History, text: str, *, image: str = "", tools: bool = False
    ) -> tuple[History, str, str]:
        content: Any = text
        if image:
            picture = {"type": "image", "base64": image, "mime_type": "image/png"}
            content = [{"type": "text", "text": text}, picture]
        model = self._model.bind_tools([{"type": "function", "function": TOOL}], strict=False)
        asked = [*history, _message("human", content)]
        reply = (model if tools else self._model).invoke(asked)
        calls = [call["id"] for call in reply.tool_calls]
        return [*asked, reply], reply.text, next(iter(calls), "")

    def stream(self, history: History, text: str) -> tuple[History, Iterator[str]]:
        asked = [*history, _message("human", text)]
        pieces = self._model.stream(asked)
        return asked, _read_pieces(pieces, lambda piece: str(piece.text))

    def add_reply(self, history: History, text: str) -> History:
        return [*history, _message("ai", text)]

    def give(self, history: History, call: str, result: str) -> tuple[History, str]:
        asked = [*history, _message("tool", result, tool_call_id=call)]
        model = self._model.bind_tools([{"type": "function", "function": TOOL}], strict=False)
        reply = model.invoke(asked)
        return [*asked, reply], reply.text


def _message(kind: str, content: Any, **more: Any) -> Any:
    from langchain_core import messages

    kinds: dict[str, Callable[..., Any]] = {
        "human": messages.HumanMessage,
        "ai": messages.AIMessage,
        "tool": messages.ToolMessage,
    }
    return kinds[kind](content, **more)


def _read_pieces(pieces: Any, read: Callable[[Any], str]) -> Iterator[str]:
    """The texts of a stream; to close this is to close the stream."""
    try:
        yield from map(read, pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


class LiteLLMClient:
    """LiteLLM's `completion`, with one of its providers."""

    def __init__(self, provider: str, url: str) -> None:
        import litellm  # type: ignore[import-not-found,unused-ignore]

        litellm.telemetry = False
        self._ask: Any = litellm.completion
        self._options = {
            "model": f"{provider}/{MODEL}",
            "api_base": url.removesuffix("/v1") if provider == "anthropic" else url,
            "api_key": KEY,
            "extra_headers": HEADERS,
            "num_retries": 0,
        }
        self._tools = {"tools": [{"type": "function", "function": TOOL}]}

    def say(
        self, history: History, text: str, *, image: str = "", tools: bool = False
    ) -> tuple[History, str, str]:
        content: Any = text
        if image:
            url = {"url": f"data:image/png;base64,{image}"}
            content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]
        return self._add_answer([*history, {"role": "user", "content": content}], tools)

    def _add_answer(self, asked: History, tools: bool) -> tuple[History, str, str]:
        given = self._tools if tools else {}
        reply = self._ask(messages=asked, **self._options, **given).choices[0].message
        calls = [call.id for call in reply.tool_calls or ()]
        return [*asked, reply.model_dump()], reply.content or "", next(iter(calls), "")

    def stream(self, history: History, text: str) -> tuple[History, Iterator[str]]:
        asked = [*history, {"role": "user", "content": text}]
        pieces = self._ask(messages=asked, stream=True, **self._options)
        return asked, _read_pieces(pieces, lambda piece: piece.choices[0].delta.content or "")

    def add_reply(self, history: History, text: str) -> History:
        return [*history, {"role": "assistant", "content": text}]

    def give(self, history: History, call: str, result: str) -> tuple[History, str]:
        told = {"role": "tool", "tool_call_id": call, "content": result}
        return self._add_answer([*history, told], tools=True)[:2]


class LiteLLMResponsesClient:
    """LiteLLM's `responses`."""

    def __init__(self, url: str) -> None:
        import litellm  # type: ignore[import-not-found,unused-ignore]

        litellm.telemetry = False
        self._ask: Any = litellm.responses
        self._options = {
            "model": f"openai/{MODEL}",
            "api_base": url,
            "api_key": KEY,
            "extra_headers": HEADERS,
        }

    def say(
        self, history: History, text: str, *, image: str = "", tools: bool = False
    ) -> tuple[History, str, str]:
        content: Any = [{"type": "input_text", "text": text}]
        if image:
            url = f"data:image/png;base64,{image}"
            content.append({"type": "input_image", "image_url": url})
        return self._add_answer([*history, {"role": "user", "content": content}], tools)

    def _add_answer(self, asked: History, tools: bool) -> tuple[History, str, str]:
        given = {"tools": [{"type": "function", **TOOL}]} if tools else {}
        output = self._ask(input=asked, **self._options, **given).model_dump()["output"]
        texts = [b["text"] for o in output if o["type"] == "message" for b in o["content"]]
        calls = [o["call_id"] for o in output if o["type"] == "function_call"]
        return [*asked, *output], "".join(texts), next(iter(calls), "")

    def stream(self, history: History, text: str) -> tuple[History, Iterator[str]]:
        asked = [*history, {"role": "user", "content": text}]
        events = self._ask(input=asked, stream=True, **self._options)
        return asked, _read_pieces(
            events,
            lambda event: event.delta if event.type == "response.output_text.delta" else "",
        )

    def add_reply(self, history: History, text: str) -> History:
        return [*history, {"role": "assistant", "content": text}]

    def give(self, history: History, call: str, result: str) -> tuple[History, str]:
        told = {"type": "function_call_output", "call_id": call, "output": result}
        return self._add_answer([*history, told], tools=True)[:2]


def open_langchain(url: str, **options: Any) -> Client:
    """`ChatOpenAI` with some options."""
    from langchain_openai import ChatOpenAI

    given = {"base_url": url, "api_key": KEY, "default_headers": HEADERS, "max_retries": 0}
    return LangChainClient(ChatOpenAI(model=MODEL, **given, **options))


def open_langchain_anthropic(url: str) -> Client:
    """`ChatAnthropic`."""
    from langchain_anthropic import ChatAnthropic

    base = url.removesuffix("/v1")
    given: Any = {"base_url": base, "api_key": KEY, "default_headers": HEADERS, "max_retries": 0}
    return LangChainClient(ChatAnthropic(model_name=MODEL, **given))


CLIENTS: dict[str, Callable[[str], Client]] = {
    "langchain-chat": lambda url: open_langchain(url, use_responses_api=False),
    "langchain-responses": lambda url: open_langchain(url, use_responses_api=True),
    "langchain-previous": lambda url: open_langchain(
        url, use_responses_api=True, use_previous_response_id=True
    ),
    "langchain-anthropic": open_langchain_anthropic,
    "litellm-chat": lambda url: LiteLLMClient("openai", url),
    "litellm-anthropic": lambda url: LiteLLMClient("anthropic", url),
    "litellm-responses": LiteLLMResponsesClient,
}
"""Each by its name; made for the base URL of an endpoint, which ends with `/v1`."""


def main(arguments: Sequence[str]) -> None:
    """Hold the talk and print it."""
    name, url = arguments
    print(json.dumps(hold(CLIENTS[name](url))))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
