"""The main window's prompt, laid out so that it grows at its end.

`ledger` (the default) keeps every recall note behind the user message that called for it, so
the prompt of a turn begins with the whole prompt of the turn before. `spec` is the order of
the design paper: what was recalled this turn, by score, before the messages.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from topicloom.context.fence import fence
from topicloom.context.fitting import Fit, find_rounds, flatten, list_fits, select_rest
from topicloom.context.notes import format_layer, render_note
from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import (
    date_messages,
    describe_blocks,
    excerpt,
    format_day,
    show_message,
)
from topicloom.context.windows import SMALLEST
from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language
from topicloom.state.recall import Note, parse_message_number
from topicloom.state.stored_message import StoredMessage, foresee_message

_MAX_TOKENS_PER_CHARACTER = 2
"""Tokens that a character costs at most, about."""
_UNSENDABLE = re.compile(r"[\s<|\\/>]+")

LayoutName = Literal["ledger", "spec"]
Block = dict[str, Any]
"""A content block."""


@dataclass(frozen=True, slots=True)
class MainPrompt:
    """A prompt of the main window."""

    messages: list[BaseMessage]
    """System message first, if there is anything to say in one."""
    sections: dict[str, int]
    """Tokens of `system`, `notes` and `tail`; of `skeleton` and `curated`, if there are any."""
    sources: list[StoredMessage]
    """Quoted originals, those of the newest note first."""

    @property
    def size(self) -> int:
        """Tokens of all sections."""
        return sum(self.sections.values())


@dataclass(frozen=True, slots=True)
class Layout:
    """Lays out prompts of one main window."""

    counter: TokenCounter
    cap: int
    """Tokens past which a message is shown in part; fixed, or prefixes would break."""
    order: LayoutName = "ledger"
    """Where recall notes stand."""
    media: bool = True
    """True to send images and other media, False for lines that stand for them."""

    def show(
        self,
        stored: StoredMessage,
        language: Language,
        day: str = "",
        *,
        halvings: int = 0,
        whole: bool = False,
    ) -> AnyMessage:
        """A message as the prompt has it, under the line of a day.

        Its text is cut past the cap, which may be halved. If its calls, thoughts and other blocks
        together are past it, thoughts are left out, as they come back whole or not at all, lines
        stand for blocks of unknown kinds, and calls have long arguments in part. Media are sent
        past the cap, but not past halves of it. With `whole`, all but text is as it was.
        """
        limit = self.cap >> halvings
        text = self.format_text(stored, language, limit)
        media = self.media and (not halvings or self._count_blocks(stored.media) <= limit)
        message = show_message(stored, text, day, None if media else language)
        if stored.whole and not whole and self.counter.message(select_rest(stored)) > limit:
            lines = describe_blocks(stored, language, media=not media)
            mark = get_wording(language).left_out
            said = "\n".join(filter(None, [day, text, lines])) or mark.format(
                count=len(str(stored.message.content)), id=stored.id
            )
            shorten = partial(self._shorten, message_id=stored.id, language=language)
            shown = stored.media if media else []
            message = flatten(stored.message, said, shown, limit, shorten, self.counter.text)
        return _sanitize_name(message)

    def format_text(
        self, stored: StoredMessage, language: Language, limit: int | None = None
    ) -> str:
        """The text of a message as the prompt shows it, within the cap or another limit."""
        limit = self.cap if limit is None else limit
        # Fenced once more: a line may begin where something is left out.
        return fence(self._shorten(fence(stored.text), limit, stored.id, language))

    def _shorten(self, text: str, limit: int, message_id: str, language: Language) -> str:
        if len(text) * _MAX_TOKENS_PER_CHARACTER <= limit:
            return text  # not worth counting: it fits in any case
        return excerpt(text, limit, self.counter.text, message_id, language)

    def count_tokens(self, stored: StoredMessage, language: Language) -> int:
        """Tokens of a message in the prompt, without the line of its day."""
        return self.counter.message(self.show(stored, language))

    def count_day(self, day: str, language: Language) -> int:
        """Tokens of the line above the first message of a day."""
        line = format_day(day, language)
        return self.counter.text(f"{line}\n") if line else 0

    def select_shown(self, notes: Sequence[Note], newest: int) -> Sequence[Note]:
        """The notes that a prompt shows whose newest message has that number.

        The spec's order shows what this turn recalled, not what earlier ones did.
        """
        return [n for n in notes if n.after == newest] if self.order == "spec" else notes

    def build_prompt(
        self,
        system: str,
        view: Sequence[StoredMessage],
        notes: Sequence[Note],
        fetch: Callable[[int], StoredMessage],
        language: Language,
        loop: Sequence[BaseMessage] = (),
        view_tokens: int | None = None,
        room: int | None = None,
    ) -> MainPrompt:
        """Lay a prompt out.

        The view, its last message to answer, and the notes since the last split come oldest first;
        `loop` is what has been said since: tool calls and their results. All of these fit `room`,
        but for the newest message in view and the newest calls, if these alone are too large.
        """
        notes = self.select_shown(notes, max((m.seq for m in view if m.role == "user"), default=0))
        texts = _render_notes(notes, fetch, language)
        media: dict[int, list[Block]] = {}
        for note in notes:
            media.setdefault(note.after, []).extend(self.show_media(note, fetch, language))
        noted = sum(map(self.counter.text, texts.values()))
        noted += sum(map(self._count_blocks, media.values()))
        said = _Said(self, view, loop, language)
        tail = said.count(Fit(), view_tokens)
        fit = Fit()
        if room is not None and tail + noted > room:
            fit = said.find_fit(room - noted)
            tail = said.count(fit)
        numbers, messages, loop = said.show(fit)
        for after, blocks in media.items():
            place = max(0, bisect_right(numbers, after) - 1)
            text = texts[after] if self.order == "ledger" else ""
            messages[place] = _append_content(messages[place], text, blocks)
        head = [system] if system else []
        if self.order == "spec":
            head += texts.values()
        newest_first = [t for n in reversed(notes) for t in n.topics]
        quoted = [fetch(parse_message_number(i)) for t in newest_first for i in t.quotes]
        layers = self._count_layers(notes)
        return MainPrompt(
            messages=[
                *([SystemMessage("\n\n".join(head))] if head else []),
                *_pair_tool_calls([*messages, *loop], language),
            ],
            sections={
                "system": self.counter.message(SystemMessage(system)) if system else 0,
                "notes": max(0, noted - sum(layers.values())),
                "tail": tail,
                **layers,
            },
            sources=quoted,
        )

    def show_media(
        self, note: Note, fetch: Callable[[int], StoredMessage], language: Language
    ) -> list[Block]:
        """The media that a note brings back, each message's behind the line that stands for them.

        Of a message as many, but one at least, as a long text may have tokens. Those of what was
        purged since are gone.
        """
        blocks = list[Block]()
        for original in (fetch(parse_message_number(i)) for i in note.media):
            shown, line = list[Block](), describe_blocks(original, language)
            for block in original.media if self.media else ():
                if shown and self._count_blocks([*shown, block]) > self.cap:
                    break
                shown.append(block)
            blocks += [{"type": "text", "text": line}, *shown] if original.media else ()
        return blocks

    def count_note(
        self, note: Note, fetch: Callable[[int], StoredMessage], language: Language
    ) -> int:
        """Tokens of a note in the prompt."""
        text = self.counter.text(render_note(note, fetch, language))
        return text + self._count_blocks(self.show_media(note, fetch, language))

    def _count_blocks(self, blocks: Sequence[Block]) -> int:
        return self.counter.message(HumanMessage([*blocks])) if blocks else 0

    def _count_layers(self, notes: Sequence[Note]) -> dict[str, int]:
        """Tokens of the layers of a domain, by section."""
        sizes: dict[str, int] = {}
        for layer in (layer for note in notes for layer in note.layers):
            section = "skeleton" if layer.kind == "deterministic" else "curated"
            sizes[section] = sizes.get(section, 0) + self.counter.text(format_layer(layer))
        return sizes


class _Said:
    """What is said in a prompt, more or less of it: the view, and the running turn behind it."""

    def __init__(
        self,
        layout: Layout,
        view: Sequence[StoredMessage],
        loop: Sequence[BaseMessage],
        language: Language,
    ) -> None:
        last = view[-1].seq if view else 0
        self._layout, self._language, self._begins = layout, language, len(view)
        self._all = [*view, *(foresee_message(m, seq=n) for n, m in enumerate(loop, last + 1))]
        self._days = {0: date_messages(view, language)}
        """The lines of days, by how many messages are left out before them."""
        replies = [n for n, m in enumerate(loop) if isinstance(m, AIMessage)]
        self._newest = self._begins + (replies[-1] if replies else 0)
        """Place of the newest reply."""
        self._rounds = find_rounds([m.message for m in view])
        self._calls = [self._begins + n for n in find_rounds(loop)]
        self._calls = [n for n in self._calls if n <= self._newest]
        self._sizes: dict[tuple[int, int], int] = {}
        self._shown: dict[tuple[int, int, str], AnyMessage] = {}

    def find_fit(self, room: int) -> Fit:
        """How much of it fits so many tokens; the least, if nothing does."""
        halvings = max(0, (self._layout.cap // SMALLEST).bit_length() - 1)
        fits = list_fits(halvings, len(self._rounds), len(self._calls))
        place = bisect_left(fits, True, key=lambda fit: self.count(fit) <= room)
        return fits[min(place, len(fits) - 1)]

    def count(self, fit: Fit, view_tokens: int | None = None) -> int:
        """Tokens of what is shown, of the view's if they are known."""
        places = self._list_shown(fit)
        line = self._describe_left(fit)
        beside = self._count_made(places) + self._layout.counter.text(line and f"\n\n{line}")
        if view_tokens is not None:
            beside, places = beside + view_tokens, [n for n in places if n >= self._begins]
        return beside + sum(self._size(n, fit) for n in places)

    def _count_made(self, places: Sequence[int]) -> int:
        """Tokens of what stands for results where there is none, or none but an empty one."""
        given = [self._all[n].message for n in places]
        known = {id(m) for m in given}
        made = (m for m in _pair_tool_calls(given, self._language) if id(m) not in known)
        none = get_wording(self._language).cut_off
        return sum(self._layout.counter.message(m) for m in made if m.content == none)

    def show(self, fit: Fit) -> tuple[list[int], list[AnyMessage], list[AnyMessage]]:
        """Numbers of messages of the view, these, and those of the running turn."""
        places = self._list_shown(fit)
        shown = [self._show(n, fit) for n in places]
        view = sum(n < self._begins for n in places)
        if line := self._describe_left(fit):
            shown[view - 1] = _append_content(shown[view - 1], line, [])
        return [self._all[n].seq for n in places[:view]], shown[:view], shown[view:]

    def _list_shown(self, fit: Fit) -> list[int]:
        begin = self._rounds[fit.left_view] if self._rounds else 0
        resume = self._calls[fit.left] if self._calls else self._begins
        return [*range(begin, self._begins), *range(resume, len(self._all))]

    def _describe_left(self, fit: Fit) -> str:
        left = len(self._all) - len(self._list_shown(fit))
        return get_wording(self._language).missing.format(count=left) if left else ""

    def _show(self, place: int, fit: Fit) -> AnyMessage:
        begin = self._rounds[fit.left_view] if self._rounds else 0
        day, halvings = "", fit.newest if place >= self._newest else fit.older
        if place < self._begins:
            if begin not in self._days:
                view = self._all[begin : self._begins]
                self._days[begin] = date_messages(view, self._language)
            day = self._days[begin][place - begin]
            halvings = fit.last if place == self._begins - 1 else fit.view
        key = (place, halvings, day)
        if key not in self._shown:
            self._shown[key] = self._layout.show(
                self._all[place],
                self._language,
                day,
                halvings=halvings,
                whole=self._is_whole(place, halvings),
            )
        return self._shown[key]

    def _is_whole(self, place: int, halvings: int) -> bool:
        """True for a reply of the running turn, which providers take back as they gave it.

        Once results are shown in part, only for the newest.
        """
        reply = place >= self._begins and isinstance(self._all[place].message, AIMessage)
        return reply and (not halvings or place == self._newest)

    def _size(self, place: int, fit: Fit) -> int:
        message = self._show(place, fit)
        key = (place, id(message))
        if key not in self._sizes:
            self._sizes[key] = self._layout.counter.message(message)
        return self._sizes[key]


def _render_notes(
    notes: Sequence[Note], fetch: Callable[[int], StoredMessage], language: Language
) -> Mapping[int, str]:
    texts: dict[int, str] = {}
    for note in notes:
        text = render_note(note, fetch, language)
        texts[note.after] = f"{texts[note.after]}\n{text}" if note.after in texts else text
    return texts


def _sanitize_name(message: AnyMessage) -> AnyMessage:
    """The message under a name that providers take: OpenAI refuses blanks and `<|\\/>` in one."""
    if message.name is None or not _UNSENDABLE.search(message.name):
        return message
    return message.model_copy(update={"name": _UNSENDABLE.sub("_", message.name)})


def _pair_tool_calls(messages: Sequence[BaseMessage], language: Language) -> list[BaseMessage]:
    """Calls with results and results with calls: providers refuse the one without the other.

    A call that was cut off is given a result that says so, and so is one whose result is empty; a
    result that nothing called for becomes the user's.
    """
    cut_off = get_wording(language).cut_off
    whole: list[BaseMessage] = []
    due: dict[str | None, str | None] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            called = message.tool_call_id in due
            whole.append(message if called else HumanMessage(message.content or cut_off))
            due.pop(message.tool_call_id, None)
            continue
        whole += _make_missing_results(due, cut_off)
        due = {}
        if isinstance(message, AIMessage):
            calls = [*message.tool_calls, *message.invalid_tool_calls]
            due = {c["id"]: c["name"] for c in calls}
        whole.append(message)
    return whole + _make_missing_results(due, cut_off)


def _make_missing_results(due: Mapping[str | None, str | None], text: str) -> list[ToolMessage]:
    return [ToolMessage(text, tool_call_id=i or "", name=name) for i, name in due.items()]


def _append_content(message: AnyMessage, text: str, blocks: Sequence[Block]) -> AnyMessage:
    content = message.content
    if isinstance(content, str) and not blocks:
        return message.model_copy(update={"content": f"{content}\n\n{text}"}) if text else message
    parts: list[str | Block] = [content] if isinstance(content, str) else [*content]
    parts += [{"type": "text", "text": text}] if text else []
    return message.model_copy(update={"content": [*parts, *blocks]})
