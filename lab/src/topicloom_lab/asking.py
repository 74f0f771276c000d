"""Asking a question of a session without a trace, and the measure of tokens it is asked under."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput, SimpleChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from topicloom import (
    Absence,
    FileStorage,
    Memory,
    Receipt,
    ReplyRequest,
    SessionStore,
    StoredMessage,
    TurnOptions,
    count_budget_tokens,
    get_session,
)
from topicloom.lab import Graph, ToolLike, get_text, parse_message_number
from topicloom.testing import ScriptedResponder


class RespondingModel(BaseChatModel):
    """A chat model that says what a responder says, in one piece, for agents."""

    responder: Any

    @property
    def _llm_type(self) -> str:
        return "responding"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """The same: a responder calls no tools of an agent."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        session = str(get_config()["configurable"]["thread_id"])
        (chunk,) = self.responder.stream(ReplyRequest(session, messages, (), "", (), "en"))
        message = message_chunk_to_message(chunk)
        return ChatResult(generations=[ChatGeneration(message=message)])


class AnsweringModel(SimpleChatModel):
    """A chat model that answers what a function makes of a prompt and of the tools bound to it."""

    answer: Callable[[Sequence[BaseMessage], Sequence[Any]], str]

    @property
    def _llm_type(self) -> str:
        return "answering"

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Have the tools shown with each prompt, as OpenAI takes them."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: object = None,
        **kwargs: Any,
    ) -> str:
        return self.answer(messages, kwargs.get("tools", ()))


NOTHING_IN_VIEW = TurnOptions(keep_messages=0)
"""For a question that everything is recalled for: all that was said is in topics."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The prompt of the main model for a question."""

    prompt: tuple[BaseMessage, ...]
    """Everything but system prompt and question."""
    note: str
    """The part of it that was recalled for the question; "" if nothing was."""
    originals: tuple[StoredMessage, ...]
    """Messages that were quoted whole, or stood in view."""
    receipt: Receipt
    """The question's turn."""
    lost: Mapping[str, Absence]
    """Where the turn lost the messages that were sought, by short id, or how it had them."""

    @property
    def calls(self) -> Counter[str]:
        """Calls by role."""
        return Counter(call.role for call in self.receipt.calls)

    @property
    def failed(self) -> Counter[str]:
        """Calls that gave nothing usable, by role; a stand-in was called after each."""
        return Counter(call.role for call in self.receipt.failures)


@dataclass(frozen=True, slots=True)
class Questioner:
    """Asks one session."""

    graph: Graph
    """Compiled, with a checkpointer."""
    config: RunnableConfig
    """Names the thread."""
    storage: FileStorage
    """The storage of the session."""
    oracle: ScriptedResponder
    """Answers in the graph, by itself or behind a recording."""

    def ask(
        self, question: str, options: TurnOptions = NOTHING_IN_VIEW, sought: Iterable[str] = ()
    ) -> Shown:
        """Ask from where the thread is; it goes on from there, not from the question.

        Args:
            question: The user's message.
            options: Those of its turn.
            sought: Short ids of the messages that it rests on; see `Shown.lost`.
        """
        base = self.graph.get_state(self.config)
        begun = bool(base.values)
        self.oracle.requests.clear()
        receipts = [
            event["receipt"]
            for event in self.graph.stream(
                {"messages": [HumanMessage(question)]},
                base.config if begun else self.config,
                context=options,
                stream_mode="custom",
                durability="exit",
            )
            if event["type"] == "receipt"
        ]
        receipt = Receipt.model_validate(receipts[-1])
        shown = self._originals(receipt)
        memory, asked = Memory.of(self.graph, self.config), parse_message_number(receipt.user)
        said = (message for message in sought if parse_message_number(message) < asked)
        lost = {message: memory.why_not(receipt.turn, message) for message in said}
        if begun:
            self.graph.update_state(base.config, {"messages": []})
        view, note = _take_apart(self.oracle.requests[-1].messages, question)
        prompt = (*view, *([SystemMessage(note)] if note else []))
        return Shown(prompt, note, shown, receipt, lost)

    def _originals(self, receipt: Receipt) -> tuple[StoredMessage, ...]:
        """What is in view, what is quoted for the question, and what older notes in view quote."""
        session = get_session(self.graph, self.config)
        store = SessionStore(self.storage.open(session.id))
        earlier = [topic for note in store.notes(session) for topic in note.topics]
        noted = [*receipt.quoted, *earlier]
        quoted = [i for topic in noted for i in topic.quotes if i not in topic.partial]
        numbers = {
            *map(parse_message_number, quoted),
            *range(session.view, parse_message_number(receipt.user)),
        }
        return tuple(store.pick(session, numbers).values())


def _take_apart(
    prompt: Sequence[BaseMessage], question: str
) -> tuple[tuple[BaseMessage, ...], str]:
    """What stands before the question, without system messages, and the note behind it."""
    *view, last = [m for m in prompt if m.type != "system"]
    return tuple(view), get_text(last).partition(question)[2].strip("\n")


class BudgetCounter:
    """Counts as the published figures do: a CJK character, or four others, is a token."""

    def text(self, text: str) -> int:
        """See `TokenCounter.text`."""
        return count_budget_tokens(text)

    def message(self, message: BaseMessage) -> int:
        """See `TokenCounter.message`."""
        return count_budget_tokens(f"{message.name or message.type}: {get_text(message)}")

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """See `TokenCounter.tools`."""
        return sum(count_budget_tokens(json.dumps(convert_to_openai_tool(t))) for t in tools)
