"""The main window's prompt, laid out so that it grows at its end.

`ledger` (the default) keeps every recall note behind the user message that called for it, so
the prompt of a turn begins with the whole prompt of the turn before. `spec` is the layout of
the design paper: this turn's note in the system message, before the messages, topic by topic with
name, file and brief.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from topicloom.context.message_order import order_messages, sanitize_name, say_anew, to_common_kind
from topicloom.context.notes import format_layer, format_quote_line, format_summary, render_note
from topicloom.context.prompt_messages import (
    PromptMessages,
    Shortening,
    append_content,
    select_rest,
    shorten_calls,
)
from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import describe_blocks, drop_compaction, excerpt, show_message
from topicloom.prompts.wording import get_wording
from topicloom.state.content_blocks import Block, give_back, is_broken
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.recall import LayoutName, Note, Stretches, parse_message_number, select_notes
from topicloom.state.stored_message import StoredMessage

_MAX_TOKENS_PER_CHARACTER = 2
"""Tokens that a character costs at most, about."""


@dataclass(frozen=True, slots=True)
class MainPrompt:
    """A prompt of the main window."""

    instructions: SystemMessage | None
    """The system message; None if there is nothing to say in one."""
    said: list[BaseMessage]
    """The conversation behind it. The first is the user's."""
    sections: dict[str, int]
    """Tokens of `system`, `notes` and `tail`; of `skeleton` and `curated`, if there are any."""
    sources: list[StoredMessage]
    """Quoted originals, those of the newest note first."""

    left_out: tuple[str, ...] = ()
    """Lines that name what the turn was just given and is not in it."""

    @property
    def messages(self) -> list[BaseMessage]:
        """All of it, as it is sent."""
        return [self.instructions, *self.said] if self.instructions else self.said

    @property
    def size(self) -> int:
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
        verbatim: bool = False,
    ) -> AnyMessage:
        """A message as the prompt has it, under the line of a day.

        Its text is cut past the cap, which may be halved. If its calls, thoughts and other blocks
        together are past it, lines stand for blocks of unknown kinds, and calls have long arguments
        in part. A reply is as its provider gave it or said anew, with text and calls alone; with
        `verbatim`, it is as it was unless its text is cut. Media are sent past the cap, but not
        past halves of it.
        """
        limit = self.cap >> halvings
        text = self.format_text(stored, language, limit)
        media = self.media and (not halvings or self._count_blocks(stored.media) <= limit)
        message = stored.message
        if isinstance(message, AIMessage) and stored.whole:
            shown = self._show_reply(stored, message, text, language, limit, media, verbatim)
        elif stored.whole and self.counter.message(select_rest(stored)) > limit:
            shown = self._show_parts(stored, text, language, day, media)
        else:
            shown = show_message(stored, text, day, None if media else language)
        return sanitize_name(to_common_kind(shown, stored))

    def _show_reply(
        self,
        stored: StoredMessage,
        reply: AIMessage,
        text: str,
        language: Language,
        limit: int,
        media: bool,
        verbatim: bool,
    ) -> AnyMessage:
        """A reply that is more than a text: as it was, or said anew, never in part."""
        if verbatim and isinstance(reply.content, list) and self._is_short(stored.text, limit):
            return reply
        heavy = not verbatim and self.counter.message(select_rest(stored)) > limit
        as_it_was = text == stored.text and (media or not stored.media)
        if as_it_was and not heavy and not any(map(is_broken, stored.blocks)):
            return drop_compaction(reply)
        shorten = partial(self._shorten, message_id=stored.id, language=language)
        calls = shorten_calls(reply, limit, shorten, self.counter.text) if heavy else None
        return say_anew(reply, self._describe(stored, text, language, media=True), calls)

    def _show_parts(
        self, stored: StoredMessage, text: str, language: Language, day: str, media: bool
    ) -> AnyMessage:
        """A user's or tool's message with blocks that are too large: text, lines, and media."""
        said = self._describe(stored, text, language, day, media=not media)
        blocks = [{"type": "text", "text": said}, *stored.media] if media and stored.media else said
        return stored.message.model_copy(update={"content": blocks})

    def _describe(
        self, stored: StoredMessage, text: str, language: Language, day: str = "", *, media: bool
    ) -> str:
        """A text with lines for the blocks beside it; a mark, if there is nothing to say."""
        lines = describe_blocks(stored, language, media=media)
        if said := "\n".join(filter(None, [day, text, lines])):
            return said
        if getattr(stored.message, "tool_calls", ()):
            return ""
        mark = get_wording(language).left_out
        return mark.format(count=len(str(stored.message.content)), id=stored.id)

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

    def shows_all(self, stored: StoredMessage) -> bool:
        """True if the prompt shows the whole text of a message that is in view."""
        return self._is_short(stored.text, self.cap)

    def _is_short(self, text: str, limit: int) -> bool:
        few = len(text) * _MAX_TOKENS_PER_CHARACTER <= limit
        return few or self.counter.text(text) <= limit

    def count_tokens(self, stored: StoredMessage, language: Language) -> int:
        """Tokens of a message in the prompt, without the line of its day."""
        return self.counter.message(self.show(stored, language))

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
        headings: Mapping[str, str] | None = None,
    ) -> MainPrompt:
        """Lay a prompt out.

        The view, its last message to answer, and the notes since the last split come oldest first;
        `loop` is what has been said since: tool calls and their results. All of these fit `room`,
        but for the newest message in view and the newest calls, if these alone are too large. The
        spec's order has `headings` of topics, by id.
        """
        newest = max((m.seq for m in view if m.role == "user"), default=0)
        notes = select_notes(notes, newest, self.order)
        texts = _render_notes(notes, fetch, language, headings)
        media: dict[int, list[Block]] = {}
        for note in notes:
            media.setdefault(note.after, []).extend(self.show_media(note, fetch, language))
        noted = sum(map(self._count_note_text, texts.values()))
        noted += sum(map(self._count_blocks, media.values()))
        said = PromptMessages(self, view, loop, language)
        tail = said.count(Shortening(), view_tokens)
        cut = Shortening()
        if room is not None and tail + noted > room:
            cut = said.find_shortening(room - noted)
            tail = said.count(cut)
        numbers, messages, loop = said.show(cut)
        lead = said.count_lead(numbers)
        for after, blocks in media.items():
            place = max(0, bisect_right(numbers, after) - 1)
            text = texts[after] if self.order == "ledger" else ""
            messages[place] = append_content(messages[place], text, blocks)
        head = [system] if system else []
        head += [self.format_text(m, language) for m in view if m.seq in numbers[:lead]]
        if self.order == "spec":
            head += texts.values()
        newest_first = [t for n in reversed(notes) for t in n.topics]
        quoted = [fetch(parse_message_number(i)) for t in newest_first for i in t.quotes]
        layers = self._count_layers(notes)
        return MainPrompt(
            instructions=SystemMessage("\n\n".join(head)) if head else None,
            said=order_messages([*messages[lead:], *loop], language),
            sections={
                "system": self.counter.message(SystemMessage(system)) if system else 0,
                "notes": max(0, noted - sum(layers.values())),
                "tail": tail,
                **layers,
            },
            sources=quoted,
            left_out=said.list_left_out(cut),
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
                shown.append(give_back(block))
            blocks += [{"type": "text", "text": line}, *shown] if original.media else ()
        return blocks

    def count_note(
        self, note: Note, fetch: Callable[[int], StoredMessage], language: Language
    ) -> int:
        text = self._count_note_text(render_note(note, fetch, language))
        return text + self._count_blocks(self.show_media(note, fetch, language))

    def count_quote(
        self, original: StoredMessage, language: Language, stretches: Stretches | None = None
    ) -> int:
        """Tokens of one quoted original in a note, or of stretches of it."""
        return self.counter.text(f"{format_quote_line(original, language, stretches)}\n")

    def count_frame(self, original: StoredMessage, language: Language) -> int:
        """Tokens of what stands around the stretches of one that is quoted in part."""
        return self.counter.text(format_quote_line(original, language, ()))

    def count_heading(self, topic: str, language: Language) -> int:
        """Tokens of what stands before the summary of a topic of that name."""
        return self.counter.text(format_summary(topic, "", language)) + 1

    def _count_note_text(self, text: str) -> int:
        """Tokens of a note or a part of it, with the line break before it."""
        return self.counter.text(f"\n\n{text}") if text else 0

    def _count_blocks(self, blocks: Sequence[Block]) -> int:
        return self.counter.message(HumanMessage([*blocks])) if blocks else 0

    def _count_layers(self, notes: Sequence[Note]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for layer in (layer for note in notes for layer in note.layers):
            section = "skeleton" if layer.kind == "deterministic" else "curated"
            tokens = self._count_note_text(format_layer(layer))
            sizes[section] = sizes.get(section, 0) + tokens
        return sizes


def _render_notes(
    notes: Sequence[Note],
    fetch: Callable[[int], StoredMessage],
    language: Language,
    headings: Mapping[str, str] | None,
) -> Mapping[int, str]:
    texts: dict[int, str] = {}
    for note in notes:
        text = render_note(note, fetch, language, headings)
        texts[note.after] = f"{texts[note.after]}\n{text}" if note.after in texts else text
    return texts
