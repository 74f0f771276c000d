"""The main window's prompt, laid out so that it grows at its end.

`ledger` (the default) keeps every recall note behind the user message that called for it, so
the prompt of a turn begins with the whole prompt of the turn before. `spec` is the order of
spec 000, section 5: what was recalled this turn, by score, before the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage, ToolMessage

from topicloom.context.excerpt import excerpt
from topicloom.context.notes import render_note
from topicloom.context.tokens import TokenCounter
from topicloom.state.recall import Note, number_of
from topicloom.state.records import Record
from topicloom.state.session import Language

LayoutName = Literal["ledger", "spec"]


@dataclass(frozen=True, slots=True)
class MainPrompt:
    """A prompt of the main window."""

    messages: list[BaseMessage]
    """System message first, if there is anything to say in one."""
    sections: dict[str, int]
    """Tokens of `system`, `notes` and `tail`."""
    whole: frozenset[str]
    """Short ids of the originals whose whole text stands in it."""
    sources: list[Record]
    """Quoted originals, those of the newest note first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Lays out prompts of one main window."""

    counter: TokenCounter
    """Counts tokens."""
    cap: int
    """Tokens past which a message is shown in part; fixed, or prefixes would break."""
    part: int
    """Tokens of an original that is quoted in part."""
    order: LayoutName = "ledger"
    """Where recall notes stand."""

    def shown(self, record: Record, language: Language) -> str:
        """The text of a record as the prompt shows it."""
        return excerpt(record.text, self.cap, self.counter.text, record.id, language)

    def size(self, record: Record) -> int:
        """Tokens of a record in the prompt."""
        return min(self.counter.message(record.message), self.cap)

    def prompt(
        self,
        system: str,
        view: Sequence[Record],
        notes: Sequence[Note],
        record: Callable[[int], Record],
        language: Language,
        loop: Sequence[BaseMessage] = (),
    ) -> MainPrompt:
        """Lay a prompt out.

        Args:
            system: The system message.
            view: Messages in view, oldest first, the one to answer last.
            notes: Recall notes since the last split, oldest first.
            record: Fetches an original by its number.
            language: Language of the fixed words.
            loop: What has been said since the last of the view: tool calls and their results.
        """
        texts = self._notes(notes, record, language)
        loop = [self._result(m, language) for m in loop]
        messages = [self._message(r, language) for r in view]
        if self.order == "ledger":
            first = view[0].seq if view else 1
            for after, text in texts.items():
                place = max(0, min(after - first, len(messages) - 1))
                messages[place] = _with_text(messages[place], text)
        elif texts:
            # The spec's order shows what this turn recalled, not what earlier ones did.
            system = f"{system}\n\n{texts[max(texts)]}"
        newest_first = [t for n in reversed(notes) for t in n.topics]
        quoted = [record(number_of(i)) for t in newest_first for i in t.quotes]
        partial = {i for t in newest_first for i in t.partial}
        whole = {r.id for r in view if self.counter.text(r.text) <= self.cap}
        return MainPrompt(
            messages=[*([SystemMessage(system)] if system else []), *messages, *loop],
            sections={
                "system": self.counter.message(SystemMessage(system)) if system else 0,
                "notes": sum(self.counter.text(t) for t in texts.values()),
                "tail": sum(self.size(r) for r in view) + sum(map(self.counter.message, loop)),
            },
            whole=frozenset(whole | {r.id for r in quoted if r.id not in partial}),
            sources=quoted,
        )

    def _message(self, record: Record, language: Language) -> AnyMessage:
        text = self.shown(record, language)
        if text == record.text:
            return record.message
        if isinstance(record.message.content, str):
            return record.message.model_copy(update={"content": text})
        rest = [
            b for b in record.message.content if isinstance(b, dict) and b.get("type") != "text"
        ]
        return record.message.model_copy(
            update={"content": [{"type": "text", "text": text}, *rest]}
        )

    def _result(self, message: BaseMessage, language: Language) -> BaseMessage:
        """A message of the tool loop; a tool result that is too large is shown in part."""
        if not isinstance(message, ToolMessage) or not isinstance(message.content, str):
            return message
        name = message.name or "tool"
        text = excerpt(message.content, self.cap, self.counter.text, name, language)
        return message if text == message.content else message.model_copy(update={"content": text})

    def _notes(
        self, notes: Sequence[Note], record: Callable[[int], Record], language: Language
    ) -> Mapping[int, str]:
        texts: dict[int, str] = {}
        for note in notes:
            text = render_note(
                note, record, lambda r, part: self._quoted(r, part, language), language
            )
            texts[note.after] = f"{texts[note.after]}\n{text}" if note.after in texts else text
        return texts

    def _quoted(self, record: Record, part: bool, language: Language) -> str:
        if not part:
            return record.text
        return excerpt(record.text, self.part, self.counter.text, record.id, language)


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    return message.model_copy(
        update={"content": [*message.content, {"type": "text", "text": text}]}
    )
