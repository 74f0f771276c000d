"""The messages of a prompt: as much of them as fits, in a form that providers take."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from topicloom.context.message_order import order_messages
from topicloom.context.token_count import CountText, to_json
from topicloom.context.transcript import date_messages
from topicloom.context.windows import SMALLEST
from topicloom.prompts.wording import get_wording
from topicloom.state.content_blocks import Block, get_media_kind, is_text
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage, get_text, to_stored_message

Shorten = Callable[[str, int], str]
"""A text, or as much of it as so many tokens hold."""
_LONGEST_KIND = 40
"""Characters shown of the type of a block."""
_LEAST_SHARE = 8
"""Tokens of a text in arguments, at the least of limits that are tried."""


def append_content(message: AnyMessage, text: str, blocks: Sequence[Block]) -> AnyMessage:
    """The message with a text and content blocks behind its own."""
    content = message.content
    if isinstance(content, str) and not blocks:
        return message.model_copy(update={"content": f"{content}\n\n{text}"}) if text else message
    parts: list[str | Block] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    )
    parts += [{"type": "text", "text": text}] if text else []
    return message.model_copy(update={"content": [*parts, *blocks]})


def select_rest(stored: StoredMessage) -> AnyMessage:
    """A message of what is neither text nor media in another: calls, thoughts, other blocks."""
    rest = [b for b in stored.blocks if not (is_text(b) or get_media_kind(b))]
    return stored.message.model_copy(update={"content": rest, "name": None})


def shorten_calls(
    reply: AIMessage, limit: int, shorten: Shorten, count: CountText
) -> dict[str, Any]:
    """The calls of a reply with as much of their arguments as `limit` tokens hold, about."""
    each = limit // max(1, len(reply.tool_calls) + len(reply.invalid_tool_calls))
    return {
        field: [
            {**call, "args": _shorten_arguments(call["args"], each, shorten, count)}
            for call in getattr(reply, field)
        ]
        for field in ("tool_calls", "invalid_tool_calls")
    }


def _shorten_arguments(args: Any, limit: int, shorten: Shorten, count: CountText) -> Any:
    """Arguments with the long texts in them in part; else their JSON, in part."""

    def size(value: Any) -> int:
        return count(to_json(value))

    share, best = limit, args
    while size(best) > limit and share >= _LEAST_SHARE:
        best, share = _shorten_texts(args, share, shorten), share // 2
    if size(best) > limit and isinstance(args, dict):
        best = {"arguments": shorten(to_json(args), limit)}
    return min(args, best, key=size)


def _shorten_texts(value: Any, limit: int, shorten: Shorten) -> Any:
    if isinstance(value, str):
        return shorten(value, limit)
    if isinstance(value, Mapping):
        return {key: _shorten_texts(item, limit, shorten) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(item, limit, shorten) for item in value]
    return value


if TYPE_CHECKING:
    from topicloom.context.layout import Layout


@dataclass(frozen=True, slots=True)
class Shortening:
    """A way to make the messages of a prompt fit, by how often their limits are halved."""

    view: int = 0
    """Of each message before the running turn's, but for the newest."""
    older: int = 0
    """Of each message of the running turn, but for the newest reply and its results."""
    newest: int = 0
    """Of each of these results."""
    last: int = 0
    """Of the newest message before them, which is to be answered."""
    left_view: int = 0
    """Number of the oldest rounds in view that are left out."""
    left: int = 0
    """Number of the oldest calls of the running turn that are left out, with their results."""


def list_shortenings(halvings: int, view: int, calls: int) -> list[Shortening]:
    """Ways to make messages fit, from none on, each with a smaller result than the one before.

    There are few of them, so that a growing prompt changes seldom. First results of tools become
    shorter, the newest last; then old calls go; then older messages become shorter, then go; last
    the message to answer becomes shorter. The newest of `calls` and the newest round in `view` are
    always shown.
    """
    ways = [Shortening(0, min(n, halvings), min(n // 2, halvings)) for n in range(2 * halvings + 1)]
    ways += [replace(ways[-1], left=n) for n in _double_up_to(calls - 1)]
    ways += [replace(ways[-1], view=n) for n in range(1, halvings + 1)]
    ways += [replace(ways[-1], left_view=n) for n in range(1, view)]
    return ways + [replace(ways[-1], last=n) for n in range(1, halvings + 1)]


def _double_up_to(most: int) -> list[int]:
    return [min(2**n, most) for n in range((most - 1).bit_length() + 1)] if most > 0 else []


class _RunningMessage(StoredMessage):
    """A message of the running turn, under the number that it will be stored under."""

    given: BaseMessage

    @classmethod
    def of(cls, message: BaseMessage, seq: int) -> _RunningMessage:
        stored = to_stored_message(message, seq=seq, time="")
        return cls.model_construct(**dict(stored), given=message)

    @cached_property
    def message(self) -> AnyMessage:
        """As it is: with what is not stored."""
        return cast("AnyMessage", self.given)


class PromptMessages:
    """The messages of a prompt, more or less of them: the view, and the running turn behind it."""

    def __init__(
        self,
        layout: Layout,
        view: Sequence[StoredMessage],
        loop: Sequence[BaseMessage],
        language: Language,
    ) -> None:
        last = view[-1].seq if view else 0
        self._layout, self._language, self._begins = layout, language, len(view)
        self._all = [*view, *map(_RunningMessage.of, loop, count(last + 1))]
        self._days = {0: date_messages(view, language)}
        """The lines of days, by how many messages are left out before them."""
        replies = [n for n, m in enumerate(loop) if isinstance(m, AIMessage)]
        self._newest = self._begins + (replies[-1] if replies else 0)
        """Place of the newest reply."""
        self._rounds = _find_rounds([m.message for m in view])
        self._calls = [self._begins + n for n in _find_rounds(loop)]
        self._calls = [n for n in self._calls if n <= self._newest]
        self._sizes: dict[tuple[int, int], int] = {}
        self._shown: dict[tuple[int, int, str], AnyMessage] = {}

    def find_shortening(self, room: int) -> Shortening:
        """The mildest way by which all fit so many tokens; the strongest, if none does."""
        halvings = max(0, (self._layout.cap // SMALLEST).bit_length() - 1)
        ways = list_shortenings(halvings, len(self._rounds), len(self._calls))
        place = bisect_left(ways, True, key=lambda cut: self.count(cut) <= room)
        return ways[min(place, len(ways) - 1)]

    def count(self, cut: Shortening, view_tokens: int | None = None) -> int:
        """Tokens of what is shown, of the view's if they are known."""
        places = self._list_shown(cut)
        line = self._describe_left(cut)
        fixed = self._count_ordered(places, cut) + self._layout.counter.text(line and f"\n\n{line}")
        if view_tokens is not None:
            fixed, places = fixed + view_tokens, [n for n in places if n >= self._begins]
        return fixed + sum(self._size(n, cut) for n in places)

    def _count_ordered(self, places: Sequence[int], cut: Shortening) -> int:
        """Tokens that messages have more when they are in order: of results that are missing."""
        shown = [self._show(n, cut) for n in places]
        ordered = order_messages(shown, self._language)
        given, sent = {id(m) for m in shown}, {id(m) for m in ordered}
        count = self._layout.counter.message
        made = sum(count(m) for m in ordered if id(m) not in given)
        return made - sum(count(m) for m in shown if id(m) not in sent)

    def show(self, cut: Shortening) -> tuple[list[int], list[AnyMessage], list[AnyMessage]]:
        """Numbers of messages of the view, these, and those of the running turn."""
        places = self._list_shown(cut)
        shown = [self._show(n, cut) for n in places]
        view = sum(n < self._begins for n in places)
        if line := self._describe_left(cut):
            shown[view - 1] = append_content(shown[view - 1], line, [])
        return [self._all[n].seq for n in places[:view]], shown[:view], shown[view:]

    def list_left_out(self, cut: Shortening) -> tuple[str, ...]:
        """Lines that name what is not shown of this turn's message and of its newest results."""
        given = [self._begins - 1] if self._begins else []
        given += range(max(self._begins, self._newest), len(self._all))
        found = ((self._all[n], self._show(n, cut)) for n in given)
        described = (
            _describe_left_out(m, shown) for m, shown in found if m.role in ("user", "tool")
        )
        return tuple(filter(None, described))

    def count_lead(self, numbers: Sequence[int]) -> int:
        """The number of shown messages that are instructions before all others."""
        view = {m.seq: m for m in self._all[: self._begins]}
        lead = list(takewhile(lambda n: view[n].role == "system", numbers))
        return len(lead) if len(lead) < len(self._all) else 0

    def _list_shown(self, cut: Shortening) -> list[int]:
        begin = self._rounds[cut.left_view] if self._rounds else 0
        resume = self._calls[cut.left] if self._calls else self._begins
        return [*range(begin, self._begins), *range(resume, len(self._all))]

    def _describe_left(self, cut: Shortening) -> str:
        left = len(self._all) - len(self._list_shown(cut))
        return get_wording(self._language).missing.format(count=left) if left else ""

    def _show(self, place: int, cut: Shortening) -> AnyMessage:
        begin = self._rounds[cut.left_view] if self._rounds else 0
        day, halvings = "", cut.newest if place >= self._newest else cut.older
        if place < self._begins:
            if begin not in self._days:
                view = self._all[begin : self._begins]
                self._days[begin] = date_messages(view, self._language)
            day = self._days[begin][place - begin]
            halvings = cut.last if place == self._begins - 1 else cut.view
        key = (place, halvings, day)
        if key not in self._shown:
            self._shown[key] = self._layout.show(
                self._all[place],
                self._language,
                day,
                halvings=halvings,
                verbatim=self._is_verbatim(place, halvings),
            )
        return self._shown[key]

    def _is_verbatim(self, place: int, halvings: int) -> bool:
        """True for a reply of the running turn, which providers take back as they gave it.

        Once results are shown in part, only for the newest.
        """
        reply = place >= self._begins and isinstance(self._all[place].message, AIMessage)
        return reply and (not halvings or place == self._newest)

    def _size(self, place: int, cut: Shortening) -> int:
        message = self._show(place, cut)
        key = (place, id(message))
        if key not in self._sizes:
            self._sizes[key] = self._layout.counter.message(message)
        return self._sizes[key]


def _describe_left_out(stored: StoredMessage, shown: AnyMessage) -> str:
    blocks = shown.content if isinstance(shown.content, list) else []
    missing = [b for b in stored.blocks if not is_text(b) and b not in blocks]
    if missing:
        kinds = Counter(
            clip(str(get_media_kind(b) or b.get("type")), _LONGEST_KIND) for b in missing
        )
        named = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        return f"left out of the prompt: of {stored.id} {named}"
    if fence(stored.text) not in get_text(shown):
        return f"left out of the prompt: a part of the text of {stored.id}"
    return ""


def _find_rounds(messages: Sequence[BaseMessage]) -> list[int]:
    """Where messages begin that go with their results, if there are any."""
    return [n for n, m in enumerate(messages) if n == 0 or not isinstance(m, ToolMessage)]
