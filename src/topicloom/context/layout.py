"""The main window's prompt, laid out so that it grows at its end.

`ledger` (the default) keeps every recall note behind the user message that called for it, so
the prompt of a turn begins with the whole prompt of the turn before. `spec` is the order of
the design paper: what was recalled this turn, by score, before the messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from topicloom.context.notes import format_layer, render_note
from topicloom.context.prompt_messages import (
    Block,
    Fit,
    PromptMessages,
    append_content,
    flatten,
    pair_tool_calls,
    sanitize_name,
    select_rest,
)
from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import (
    describe_blocks,
    excerpt,
    format_day,
    show_message,
)
from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language
from topicloom.state.recall import Note, parse_message_number
from topicloom.state.safe_text import fence
from topicloom.state.stored_message import StoredMessage

_MAX_TOKENS_PER_CHARACTER = 2
"""Tokens that a character costs at most, about."""

LayoutName = Literal["ledger", "spec"]


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
        return sanitize_name(message)

    def format_text(
        self, stored: StoredMessage, language: Language, limit: int | None = None
    ) -> str:
        """The text of a message as the prompt shows it, within the cap or another limit."""
        limit = self.cap if limit is None else limit
        text = fence(stored.text)
        shown = self._shorten(text, limit, stored.id, language)
        # Fenced once more: a line may begin where something is left out.
        return text if shown is text else fence(shown)

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
        said = PromptMessages(self, view, loop, language)
        tail = said.count(Fit(), view_tokens)
        fit = Fit()
        if room is not None and tail + noted > room:
            fit = said.find_fit(room - noted)
            tail = said.count(fit)
        numbers, messages, loop = said.show(fit)
        for after, blocks in media.items():
            place = max(0, bisect_right(numbers, after) - 1)
            text = texts[after] if self.order == "ledger" else ""
            messages[place] = append_content(messages[place], text, blocks)
        head = [system] if system else []
        if self.order == "spec":
            head += texts.values()
        newest_first = [t for n in reversed(notes) for t in n.topics]
        quoted = [fetch(parse_message_number(i)) for t in newest_first for i in t.quotes]
        layers = self._count_layers(notes)
        return MainPrompt(
            messages=[
                *([SystemMessage("\n\n".join(head))] if head else []),
                *pair_tool_calls([*messages, *loop], language),
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


def _render_notes(
    notes: Sequence[Note], fetch: Callable[[int], StoredMessage], language: Language
) -> Mapping[int, str]:
    texts: dict[int, str] = {}
    for note in notes:
        text = render_note(note, fetch, language)
        texts[note.after] = f"{texts[note.after]}\n{text}" if note.after in texts else text
    return texts
