"""The prompt by which a stretch of conversation is reflected upon."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.context.windows import left_out
from topicloom.prompts.loader import prompt
from topicloom.prompts.reflections import KNOWN_FACTS
from topicloom.prompts.wording import wording
from topicloom.state.facts import Fact
from topicloom.state.records import Record
from topicloom.state.session import Language

_SMALLEST = 24
"""Tokens that every message is shown with at least."""


def reflector_messages(
    records: Sequence[Record],
    facts: Sequence[Fact],
    language: Language,
    counter: TokenCounter,
    limit: int,
) -> list[BaseMessage]:
    """The prompt of a reflection; what is new stands last.

    Every message is in it, long ones in part if need be: one that is not shown is never
    reflected upon. Of the known facts, the newest that fit a third of the room, each with its
    place in `facts` as its number.

    Args:
        records: The messages, in order.
        facts: Known facts, in order.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
    """
    words = wording(language)
    room = limit - counter.text(prompt("reflector", language))
    known = [f"[f{number}] {_line(fact.text)}" for number, fact in enumerate(facts, 1)]
    cut = left_out([counter.text(line) + 1 for line in known], room // 3, 1)
    listed = "\n".join(known[cut:]) or words.nothing
    spare = room - counter.text(listed)
    shown = Transcript(counter, max(_SMALLEST, spare // 4), language).lines(records)
    if sum(counter.text(line) + 1 for line in shown) > spare:
        share = max(_SMALLEST, spare // max(1, len(records)))
        shown = Transcript(counter, share, language).lines(records)
    return [
        SystemMessage(prompt("reflector", language)),
        HumanMessage(f"{KNOWN_FACTS[language]}\n{listed}"),
        HumanMessage("\n".join(shown) or words.nothing),
    ]


def _line(text: str) -> str:
    return " ".join(text.split())
