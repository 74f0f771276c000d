"""Fitting messages, topics and lines into the window of a role's prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.prompts.loader import Prompts
from topicloom.prompts.wording import wording
from topicloom.state.blocks import blocks_of
from topicloom.state.records import Record
from topicloom.state.session import Language
from topicloom.state.topics import Topic

RESERVE = 48
"""Tokens for the lines that say where the conversation begins and what is not shown."""
SMALLEST = 24
"""Tokens that every message is shown with at least."""
_CACHE_POINT = "topicloom_lasting"


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """The window that a role's prompt has to fit."""

    counter: TokenCounter
    """Counts tokens."""
    limit: int
    """Tokens of the whole prompt, some thousand at least."""
    prompts: Prompts = field(default_factory=Prompts)
    """Instructions by role and language."""

    def messages(self, role: str, language: Language, *texts: str) -> list[BaseMessage]:
        """A prompt of the role's instructions and some texts, a message each."""
        return [SystemMessage(self.prompts(role, language)), *map(HumanMessage, texts)]

    def room(self, role: str, language: Language, *texts: str) -> int:
        """Tokens left beside the role's instructions and some texts."""
        return self.limit - sum(map(self.counter.text, (self.prompts(role, language), *texts)))


def topic_messages(
    records: Sequence[Record], shown: Transcript, room: int, step: int
) -> list[HumanMessage]:
    """The logical blocks of a topic, the oldest left out if they don't fit."""
    blocks = blocks_of(records)
    texts = shown.blocks(blocks)
    cut = count_left_out(sizes_of(texts, shown.counter), room, step)
    count = sum(len(block.records) for block in blocks[:cut])
    rest = rest_of(texts, cut, wording(shown.language).missing.format(count=count))
    return [*map(HumanMessage, rest[:-1]), *map(cache_point, rest[-1:])]


def cache_point(text: str) -> HumanMessage:
    """The last message of a part that seldom changes, before one that often does.

    The mark is for `roles/caches.py`; no provider is sent it.
    """
    return HumanMessage(text, additional_kwargs={_CACHE_POINT: True})


def is_cache_point(message: BaseMessage) -> bool:
    """True if the message ends such a part."""
    return _CACHE_POINT in message.additional_kwargs


def recent_text(tail: Sequence[Record], window: PromptWindow, language: Language, room: int) -> str:
    """The newest messages that fit some tokens."""
    counter, missing = window.counter, wording(language).missing
    lines = Transcript(counter, max(SMALLEST, room // 4), language).lines(tail)
    cut = count_left_out([counter.text(line) + 1 for line in lines], room, 1)
    return "\n".join(rest_of(lines, cut, missing.format(count=cut)))


def topic_listing(
    heads: Sequence[str], topics: Sequence[Topic], counter: TokenCounter, room: int
) -> str:
    """Topics, a line each; if their briefs don't fit, the beginnings of them."""
    briefs = [one_line(t.brief) for t in topics]
    whole = "\n".join(f"{h}: {b}" if b else h for h, b in zip(heads, briefs, strict=True))
    tokens = counter.text(whole)
    if tokens <= room:
        return whole
    spare = max(0, room - sum(counter.text(h) + 4 for h in heads))
    share = spare / max(1, tokens)
    begun = [b[: int(len(b) * share)] for b in briefs]
    return "\n".join(f"{h}: {b}..." if b else h for h, b in zip(heads, begun, strict=True))


def count_left_out(sizes: Sequence[int], room: int, step: int) -> int:
    """How many leading items to leave out so that the rest fits.

    What is left out comes to a multiple of `step` at least, so the cut stays where it is while
    the items grow by less than a step.
    """
    over = sum(sizes) - room
    if over <= 0:
        return 0
    goal, dropped = -(-over // step) * step, 0
    for index, size in enumerate(sizes):
        if dropped >= goal:
            return index
        dropped += size
    return len(sizes)


def sizes_of(texts: Sequence[str], counter: TokenCounter) -> list[int]:
    """Tokens of each text as a message."""
    return [counter.message(HumanMessage(text)) for text in texts]


def rest_of(texts: Sequence[str], cut: int, notice: str) -> list[str]:
    """The texts after a cut, the first of them under a line that says what is missing."""
    if not cut:
        return list(texts)
    return [f"{notice}\n{texts[cut]}", *texts[cut + 1 :]] if cut < len(texts) else [notice]


def one_line(text: str) -> str:
    """A text without line breaks and runs of spaces."""
    return " ".join(text.split())
