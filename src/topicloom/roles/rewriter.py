"""The rewriter: it resolves what a message refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.windows import PromptWindow, recent_text
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import first_of, lookups
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.safe_text import KEPT, clip
from topicloom.state.stored_message import StoredMessage


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A message whose references have to be resolved."""

    session: str
    text: str
    tail: Sequence[StoredMessage]
    """The messages before it."""
    language: Language


class Rewriter(Role[RewriteRequest, str], Protocol):
    """Rewrites a message so that it stands by itself."""


class ChatRewriter(ChatRole[RewriteRequest, str]):
    """Rewrites a message by the messages before it."""

    role = "rewriter"

    def step(self, request: RewriteRequest) -> Step[Answer[str]]:
        prompt = build_rewriter_prompt(request, self._chat.prompt_window)
        answer = yield from self.ask(request, "rewriter", prompt, parse_query, "<query>")
        return replace(answer, value=clip(answer.value, len(request.text) + KEPT))


def build_rewriter_prompt(request: RewriteRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which references are resolved; the message stands last."""
    language, text = request.language, request.text
    words = get_wording(language)
    recent = recent_text(request.tail, window, language, window.room("rewriter", language, text))
    return window.messages(
        "rewriter", language, recent or words.nothing, f"{words.message}\n{fence(text)}"
    )


def parse_query(text: str) -> str:
    """A rewritten message; raises `UnusableAnswerError` if there is none."""
    return first_of(text, "query", _query_of_fields)


def _query_of_fields(text: str) -> str | None:
    return next((query for field_of in lookups(text) if (query := field_of("query"))), None)


REWRITER: RoleSpec[Rewriter] = RoleSpec(
    name="rewriter",
    purpose="rewrites a message so that it stands by itself, before topics are looked for",
    answer_tokens=1_000,
    answers=str,
    played="with a cheap model",
    chat=ChatRewriter,
    without="the message is taken as it is",
)
