"""The prompt by which a selector picks candidates."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.prompts.loader import prompt
from topicloom.prompts.selections import CANDIDATES, LIMIT
from topicloom.prompts.wording import wording
from topicloom.state.candidates import Candidate
from topicloom.state.curation import one_line
from topicloom.state.records import Record
from topicloom.state.session import Language

_LONGEST = 200
"""Tokens that a message of the conversation is shown with."""


def selector_messages(
    query: str,
    tail: Sequence[Record],
    candidates: Sequence[Candidate],
    picks: int,
    language: Language,
    counter: TokenCounter,
    limit: int,
) -> list[BaseMessage]:
    """The prompt by which candidates are picked; they stand last.

    Candidates that do not fit the window are left out, the worst first; messages go before them.

    Args:
        query: The message to answer.
        tail: The messages before it, oldest first.
        candidates: Best first.
        picks: How many may be picked.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
    """
    words = wording(language)
    instructions = prompt("selector", language)
    asked = f"{words.message}\n{query}\n{CANDIDATES[language]}\n"
    asked += LIMIT[language].format(limit=picks)
    room = limit - counter.text(instructions) - counter.text(asked)
    listed = _fitting([_line(c) for c in candidates], counter, room * 3 // 4)
    room -= sum(counter.text(line) + 1 for line in listed)
    said = Transcript(counter, _LONGEST, language).lines(tail)
    recent = _fitting(said[::-1], counter, room)[::-1]
    return [
        SystemMessage(instructions),
        HumanMessage("\n".join(recent) or words.nothing),
        HumanMessage("\n".join([asked, *(listed or [words.nothing])])),
    ]


def _fitting(lines: Sequence[str], counter: TokenCounter, room: int) -> list[str]:
    """The first lines that fit."""
    kept: list[str] = []
    for line in lines:
        room -= counter.text(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _line(candidate: Candidate) -> str:
    """A candidate in one line: nothing in it can pass for a line of ours."""
    named = " ".join(filter(None, [one_line(candidate.title), *_tagged(candidate)]))
    return f"[{candidate.id}] {named}: {candidate.preview}"


def _tagged(candidate: Candidate) -> list[str]:
    tags = ", ".join(map(one_line, candidate.tags))
    return [f"({tags})"] if tags else []
