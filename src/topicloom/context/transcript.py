"""Messages of the conversation as the roles read them: lines with ids, dated by the day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice, zip_longest
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from topicloom.context.token_count import TokenCounter, to_json
from topicloom.prompts.wording import get_wording
from topicloom.state.content_blocks import (
    CALLS,
    COMPACTION,
    MEDIA_KINDS,
    REFUSAL,
    THOUGHTS,
    get_block_text,
    get_media_kind,
    is_broken,
    is_text,
)
from topicloom.state.fence import fence, fence_line
from topicloom.state.language import Language
from topicloom.state.recall import Stretches
from topicloom.state.rounds import Round
from topicloom.state.safe_text import place_cut
from topicloom.state.stored_message import StoredMessage


def excerpt(
    text: str, limit: float, count: Callable[[str], int], message_id: str, language: Language
) -> str:
    """Head and tail of a text, about two to one, and between them a mark of what is missing.

    It is the text itself if that is within the limit, which is tokens. The mark names the message.
    """
    tokens = count(text)
    if tokens <= limit or len(text) < 64:
        return text
    mark = count(get_wording(language).left_out.format(count=len(text), id=message_id))
    keep = max(32, int(len(text) * (limit - mark) / tokens))
    while True:
        head, last = (place_cut(text, p) for p in (keep * 2 // 3, len(text) - keep // 3))
        ends = (0, head), (last, len(text))
        shown = show_stretches(text, ends, message_id, language)
        if keep <= 32 or count(shown) <= limit:
            return shown
        keep = keep * 19 // 20


def shorten(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of a text that `limit` tokens hold, with an ellipsis if it is not all.

    "" for a limit of 0 or less.
    """
    tokens = count(text)
    keep = len(text) if limit > 0 else 0
    while tokens > limit and keep:
        keep = place_cut(text, min(keep - 1, int(keep * limit / tokens)))
        tokens = count(f"{text[:keep]} ...")
    return text if keep == len(text) else f"{text[:keep].rstrip()} ..." if keep else ""


def show_stretches(text: str, stretches: Stretches, message_id: str, language: Language) -> str:
    """Stretches of a text: `[…]` for what is left out, and at the last such place how much it is.

    The whole text, if it is another one since and has none of them.
    """
    ends, begins = (0, *(end for _, end in stretches)), (*(b for b, _ in stretches), len(text))
    if ends[-1] > len(text):
        return text
    gaps = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
    marks = [("\n[…]\n" if "\n" in gap else " […] ") if gap.strip() else gap for gap in gaps]
    last = max((place for place, gap in enumerate(gaps) if gap.strip()), default=None)
    if last is not None:
        count = sum(len(gap) for gap in gaps if gap.strip())
        mark = get_wording(language).left_out.format(count=count, id=message_id)
        marks[last] = f"\n{mark}\n"
    shown = [text[slice(*stretch)] for stretch in stretches]
    marks[0], marks[-1] = marks[0].lstrip(), marks[-1].rstrip()
    return "".join(chain.from_iterable(zip_longest(marks, shown, fillvalue="")))


def format_day(day: str, language: Language) -> str:
    """The line that dates what follows it, `-- 2026-03-02 (Monday) --`; "" for what is no date."""
    try:
        weekday = date.fromisoformat(day).weekday()
    except ValueError:
        return ""
    words = get_wording(language)
    return words.day.format(day=day, weekday=words.weekdays.split()[weekday])


def format_spoken_day(day: str, language: Language) -> str:
    """A day as one says it, `2 March 2026`; what is no date stays as it is."""
    try:
        said = date.fromisoformat(day)
    except ValueError:
        return fence_line(day)
    words = get_wording(language)
    month = words.months.split()[said.month - 1]
    return words.spoken_day.format(day=said.day, month=month, year=said.year)


def date_messages(messages: Sequence[StoredMessage], language: Language) -> list[str]:
    """For each message the line of its day, on a user's message of another day than the one before.

    All others have "". What comes later changes nothing, and the last line is that of the newest
    day: a prompt that is dated so still grows at its end, and says what day it is.
    """
    lines, last = [], ""
    for message in messages:
        begins = message.role == "user" and message.day != last
        last = message.day if begins else last
        lines.append(format_day(last, language) if begins else "")
    return lines


def show_message(
    stored: StoredMessage, text: str, day: str, language: Language | None = None
) -> AnyMessage:
    """The message as the main model is sent it: with this text, and the line of a day above it.

    It is the stored one itself where there is nothing to change. With a `language`, lines stand for
    media, for a model that takes none; and always for those that LangChain cannot read.
    """
    message, content = stored.message, stored.message.content
    if (language and stored.media) or any(map(is_broken, stored.blocks)):
        lines = describe_blocks(stored, language or "en")
        content = "\n".join(filter(None, [day, text, lines]))
    elif isinstance(content, str):
        content = f"{day}\n{text}" if day else text
    else:
        rest = content if text == stored.text else replace_text(content, text)
        content = [{"type": "text", "text": day}, *rest] if day else rest
    same = content == message.content
    return message if same else message.model_copy(update={"content": content})


def drop_compaction(reply: AIMessage) -> AIMessage:
    """A reply without its provider's own summary of the conversation.

    That stands for all that came before it, and hides what is recalled there.
    """
    content = reply.content
    if not isinstance(content, list):
        return reply
    kept = [b for b in content if not (isinstance(b, dict) and b.get("type") == COMPACTION)]
    return reply if len(kept) == len(content) else reply.model_copy(update={"content": kept})


def replace_text(
    content: str | list[str | dict[str, Any]], text: str
) -> str | list[str | dict[str, Any]]:
    """Content in which another text stands where the text of the message began.

    If the content has a refusal, the text becomes one and stands in its place.
    """
    if isinstance(content, str):
        return text
    said = [i for i, block in enumerate(content) if get_block_text(block)]
    begins = next((i for i in said if _is_refusal(content[i])), said[0])
    kind = REFUSAL if _is_refusal(content[begins]) else "text"
    return [
        {"type": kind, kind: text} if i == begins else block
        for i, block in enumerate(content)
        if i == begins or not is_text(block)
    ]


def _is_refusal(block: str | dict[str, Any]) -> bool:
    return not isinstance(block, str) and block.get("type") == REFUSAL


_IMPLIED_BLOCK_TYPES = CALLS | THOUGHTS
_KINDS_SHOWN = 8
"""Kinds of content that a message is said to have, at most."""
_LONGEST_KIND = 40
"""Characters of the name of a kind that is not known."""


@dataclass(frozen=True, slots=True)
class TranscriptFormatter:
    """Writes messages down as `[m42] user: ...`.

    What is written for a message depends on it and on the one before it, never on a later one:
    a transcript grows at its end.
    """

    counter: TokenCounter
    cap: float
    """Tokens past which a message is shown in part."""
    language: Language
    replies: int | None = None
    """The same for lines of the assistant and of tools; None for no other cap."""

    def format_messages(self, messages: Sequence[StoredMessage]) -> list[str]:
        """One text a message; a message of another day than the one before is preceded by it."""
        days = ["", *(m.day for m in messages)]
        caps = {"assistant": self.replies, "tool": self.replies}
        return [
            self._add_day(self._format_message(m, caps.get(m.role) or self.cap), m, day)
            for m, day in zip(messages, days, strict=False)
        ]

    def format_rounds(self, rounds: Sequence[Round]) -> list[str]:
        """One text a round, dated likewise."""
        days = ["", *(b.messages[-1].day for b in rounds)]
        return [
            self._add_day(self._format_round(b), b.messages[0], day)
            for b, day in zip(rounds, days, strict=False)
        ]

    def _format_round(self, round_: Round) -> str:
        return "\n".join(self._format_message(r, self.cap) for r in round_.messages)

    def _format_message(self, message: StoredMessage, cap: float) -> str:
        text = describe_content(message, self.language, lambda said: self._cut(said, message, cap))
        return f"[{message.id}] {fence_line(message.label)}: {text}"

    def _cut(self, text: str, message: StoredMessage, cap: float) -> str:
        """Its beginning where a mark of what is missing would be longer than what is shown."""
        count, language = self.counter.text, self.language
        mark = count(get_wording(language).left_out.format(count=len(text), id=message.id))
        if cap < 2 * mark:
            return shorten(text, int(cap), count)
        return excerpt(text, cap, count, message.id, language)

    def _add_day(self, text: str, message: StoredMessage, day_before: str) -> str:
        line = "" if message.day == day_before else format_day(message.day, self.language)
        return f"{line}\n{text}" if line else text


def describe_content(
    stored: StoredMessage, language: Language, cut: Callable[[str], str] = str
) -> str:
    """The text of a message, fenced, with tool calls and other content named in brackets.

    Where it is `cut`, all of it is fenced once more: a line may begin where something is left out.
    """
    calls = getattr(stored.message, "tool_calls", ())
    named = (f"[calls {fence_line(c['name'])} {fence(to_json(c['args']))}]" for c in calls)
    whole = "\n".join(filter(None, [fence(stored.text), *named]))
    shown = cut(whole)
    said = whole if shown == whole else fence(shown)
    return "\n".join(filter(None, [said, describe_blocks(stored, language)]))


def describe_blocks(stored: StoredMessage, language: Language, *, media: bool = True) -> str:
    """A line for each kind of content of a message that is no text: `[image: m42]`.

    By it the main model can ask for media that have left its view. Those that have not need none.
    """
    words = get_wording(language)
    names = dict(zip(MEDIA_KINDS, words.media.split(), strict=True))
    kinds = Counter[str]()
    for block in stored.blocks:
        kind, medium = str(block.get("type", "content")), get_media_kind(block)
        if not (kind in _IMPLIED_BLOCK_TYPES or is_text(block) or (medium and not media)):
            kinds[names[medium] if medium else fence_line(kind)[:_LONGEST_KIND]] += 1
    counted = (f"{kind} ×{n}" if n > 1 else kind for kind, n in kinds.items())
    lines = (words.medium.format(kind=kind, id=stored.id) for kind in counted)
    return "\n".join(islice(lines, _KINDS_SHOWN))


def find_named_media(text: str) -> list[str]:
    """The short ids in lines such as `[image: m42]`, wherever they stand in a text."""
    return re.findall(r"[:：]\s*(m[0-9]+)\b", text)
