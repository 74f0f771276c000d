"""The main window's prompt, laid out so that it grows at its end.

`ledger` (the default) keeps every recall note behind the user message that called for it, so
the prompt of a turn begins with the whole prompt of the turn before. `spec` is the order of
the design paper: what was recalled this turn, by score, before the messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
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
from topicloom.context.fitting import flatten, select_rest
from topicloom.context.notes import format_layer, render_note
from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import (
    date_messages,
    describe_blocks,
    excerpt,
    format_day,
    show_message,
)
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
        self, stored: StoredMessage, language: Language, day: str = "", *, running: bool = False
    ) -> AnyMessage:
        """A message as the prompt has it, under the line of a day.

        Its text is cut past the cap. If its calls, thoughts and other blocks together are past it,
        thoughts are left out, as they come back whole or not at all, lines stand for blocks of
        unknown kinds, and calls have long arguments in part. Media are sent whole; and all but text
        of a reply of the `running` turn, which providers take back as they gave it.
        """
        text = self.format_text(stored, language)
        message = show_message(stored, text, day, None if self.media else language)
        free = not (running and isinstance(message, AIMessage))
        if free and stored.whole and self.counter.message(select_rest(stored)) > self.cap:
            lines = describe_blocks(stored, language, media=not self.media)
            mark = get_wording(language).left_out
            said = "\n".join(filter(None, [day, text, lines])) or mark.format(
                count=len(str(stored.message.content)), id=stored.id
            )
            shorten = partial(self._shorten, message_id=stored.id, language=language)
            media = stored.media if self.media else []
            message = flatten(stored.message, said, media, self.cap, shorten, self.counter.text)
        return _sanitize_name(message)

    def format_text(self, stored: StoredMessage, language: Language) -> str:
        """The text of a message as the prompt shows it."""
        # Fenced once more: a line may begin where something is left out.
        return fence(self._shorten(fence(stored.text), self.cap, stored.id, language))

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
    ) -> MainPrompt:
        """Lay a prompt out.

        The view, its last message to answer, and the notes since the last split come oldest first;
        `loop` is what has been said since: tool calls and their results.
        """
        notes = self.select_shown(notes, max((m.seq for m in view if m.role == "user"), default=0))
        texts = _render_notes(notes, fetch, language)
        media: dict[int, list[Block]] = {}
        for note in notes:
            media.setdefault(note.after, []).extend(self.show_media(note, fetch, language))
        last = view[-1].seq if view else 0
        coming = [foresee_message(m, seq=n) for n, m in enumerate(loop, last + 1)]
        loop = [self.show(m, language, running=True) for m in coming]
        days = date_messages(view, language)
        messages = [self.show(m, language, d) for m, d in zip(view, days, strict=True)]
        numbers = [message.seq for message in view]
        for after, blocks in media.items():
            place = max(0, bisect_right(numbers, after) - 1)
            text = texts[after] if self.order == "ledger" else ""
            messages[place] = _append_content(messages[place], text, blocks)
        head = [system] if system else []
        if self.order == "spec":
            head += texts.values()
        newest_first = [t for n in reversed(notes) for t in n.topics]
        quoted = [fetch(parse_message_number(i)) for t in newest_first for i in t.quotes]
        if view_tokens is None:
            lines = sum(self.counter.text(f"{d}\n") for d in days if d)
            view_tokens = sum(self.count_tokens(m, language) for m in view) + lines
        said = _pair_tool_calls([*messages, *loop], language)
        layers = self._count_layers(notes)
        noted = sum(map(self.counter.text, texts.values()))
        noted += sum(map(self._count_blocks, media.values()))
        return MainPrompt(
            messages=[*([SystemMessage("\n\n".join(head))] if head else []), *said],
            sections={
                "system": self.counter.message(SystemMessage(system)) if system else 0,
                "notes": max(0, noted - sum(layers.values())),
                "tail": view_tokens + sum(map(self.counter.message, loop)),
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
