"""Asking a chat model: written once as a generator, driven synchronously or on the event loop.

A dialogue yields prompts and is sent the answers. Its calls carry LangGraph's `nostream` tag,
so that no token of an inner call gets into the user's stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import wording
from topicloom.roles.base import Answer, RoleName, Usage
from topicloom.roles.caches import with_cache_hints
from topicloom.roles.chat import Chat, sum_usage
from topicloom.state.records import text_of
from topicloom.state.session import Language

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a dialogue asks."""

    session: str
    window: str
    """Name of the window in it that the prompt fills, such as `reader:t3`."""
    messages: list[BaseMessage]


Dialogue = Generator[ModelCall, AIMessage, R]


@dataclass(frozen=True, slots=True)
class ParsedAnswer(Generic[T]):
    """An answer that could be read."""

    value: T
    usage: Usage
    remarks: tuple[str, ...]


class SessionRequest(Protocol):
    """What every request says."""

    @property
    def session(self) -> str:
        """The session."""
        ...

    @property
    def language(self) -> Language:
        """Language of the prompts."""
        ...


class ChatRole(Generic[Q, A]):
    """Base of roles that a chat model plays; a subclass writes the dialogue."""

    role: ClassVar[RoleName]
    """Its name, for traces."""

    def __init__(self, chat: Chat) -> None:
        """Args:
        chat: The model and its window.
        """
        self._chat = chat

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat.name

    @property
    def deadline(self) -> float | None:
        """Seconds after which the turn goes on without it."""
        return self._chat.deadline

    def dialogue(self, request: Q) -> Dialogue[Answer[A]]:
        """The prompts to send, and the answer that they come to."""
        raise NotImplementedError

    def call(self, request: Q) -> Answer[A]:
        """Answer the request.

        Raises:
            UnusableAnswerError: If the model's answer can't be read at the second time either.
            Exception: Whatever the model's client raises.
        """
        return converse(self.dialogue(request), self._chat.model, config_of(self.role))

    async def acall(self, request: Q) -> Answer[A]:
        """Answer the request without blocking the event loop; raises what `call` raises."""
        return await aconverse(self.dialogue(request), self._chat.model, config_of(self.role))


def ask(
    chat: Chat,
    request: SessionRequest,
    window: str,
    prompt: list[BaseMessage],
    parse: Callable[[str], T],
    tag: str,
) -> Dialogue[ParsedAnswer[T]]:
    """Within a dialogue: ask, and ask once more if the answer can't be read.

    Args:
        chat: Whom to ask.
        request: What is being answered.
        window: Name of the window that the prompt fills.
        prompt: What to ask.
        parse: Reads the answer.
        tag: Name of the element that the answer has to be in, for the complaint.

    Raises:
        UnusableAnswerError: If the second answer can't be read either.
    """
    answer = yield ModelCall(request.session, window, prompt)
    usage = chat.usage(request.session, window, prompt, answer)
    text = text_of(answer)
    try:
        return ParsedAnswer(parse(text), usage, ())
    except UnusableAnswerError as error:
        remark = f"asked again: {error}"
    # Some providers refuse an assistant message without text.
    said: list[BaseMessage] = [AIMessage(text)] if text.strip() else []
    complaint = HumanMessage(wording(request.language).complaint.format(tag=tag))
    prompt = [*prompt, *said, complaint]
    answer = yield ModelCall(request.session, window, prompt)
    usage = sum_usage(usage, chat.usage(request.session, window, prompt, answer))
    return ParsedAnswer(parse(text_of(answer)), usage, (remark,))


def config_of(role: RoleName) -> RunnableConfig:
    """How inner calls are made: traced by name, out of the user's stream."""
    return RunnableConfig(tags=[TAG_NOSTREAM], run_name=f"topicloom-{role}")


def converse(dialogue: Dialogue[R], model: BaseChatModel, config: RunnableConfig) -> R:
    """Hold a dialogue with a model."""
    prompt, result = _advance(dialogue, None)
    while prompt is not None:
        ready = with_cache_hints(prompt.messages, model, prompt.session, prompt.window)
        answer = model.invoke(ready.messages, config, **ready.options)
        prompt, result = _advance(dialogue, answer)
    return cast("R", result)


async def aconverse(dialogue: Dialogue[R], model: BaseChatModel, config: RunnableConfig) -> R:
    """Hold a dialogue with a model on the event loop; laying out prompts runs in a thread."""
    prompt, result = await asyncio.to_thread(_advance, dialogue, None)
    while prompt is not None:
        ready = with_cache_hints(prompt.messages, model, prompt.session, prompt.window)
        answer = await model.ainvoke(ready.messages, config, **ready.options)
        prompt, result = await asyncio.to_thread(_advance, dialogue, answer)
    return cast("R", result)


def _advance(dialogue: Dialogue[R], answer: AIMessage | None) -> tuple[ModelCall | None, R | None]:
    # StopIteration may not cross a future, so the end of the dialogue becomes a value here.
    try:
        return (next(dialogue) if answer is None else dialogue.send(answer)), None
    except StopIteration as stop:
        return None, cast("R", stop.value)
