"""The reflector: it finds what is worth knowing about the user for good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.transcript import TranscriptFormatter
from topicloom.context.windows import SMALLEST, PromptWindow, count_left_out, one_line
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.reflection.facts import Claim, Fact
from topicloom.reflection.statements import find_frame, find_statements
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.dialogue import ChatRole
from topicloom.roles.markup import (
    Element,
    find_elements,
    find_json_values,
    first_of,
    has_tag,
    stringify_values,
    unescape,
)
from topicloom.roles.values import clip, note_repairs, parse_message_ids
from topicloom.state.session import Language
from topicloom.state.stored_message import StoredMessage

_FACT_LIMIT = 300
"""Characters of a fact: one sentence."""
_MOST = 200
"""Facts that are looked at."""
_WIDEST = 64
"""Messages that one range of ids may span."""
_FACT_ID = re.compile(r"(?<![a-z0-9])f(?:act)?[\s_#.:-]{0,3}([0-9]{1,9})(?![0-9])", re.I)
_BARE = re.compile(r"[\s\[(]*([0-9]{1,9})[\s\])]*")


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """A stretch of conversation to reflect upon."""

    session: str
    records: Sequence[StoredMessage]
    """What was really said, in order."""
    facts: Sequence[Fact]
    """What is known about the user, in order; a new fact may take the place of one."""
    language: Language


class Reflector(Role[ReflectRequest, tuple[Claim, ...]], Protocol):
    """Finds facts about the user that are worth keeping, in order; they are checked elsewhere."""


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact as a reflector wrote it."""

    text: str
    """A sentence, on one line."""
    messages: tuple[str, ...]
    """Short ids of messages, each once, in the order given."""
    supersedes: tuple[int, ...] = ()
    """Numbers of known facts that hold no more."""


class ChatReflector(ChatRole[ReflectRequest, tuple[Claim, ...]]):
    """Reflects upon a stretch of conversation."""

    role = "reflector"

    def step(self, request: ReflectRequest) -> Step[Answer[tuple[Claim, ...]]]:
        """Find the facts; numbers that no known fact has are dropped."""
        prompt = build_reflector_prompt(request, self._chat.prompt_window)
        asked = yield from self.ask(request, "reflector", prompt, parse_reflection, "reflection")
        claims = tuple(_claim_of(fact, request) for fact in asked.value)
        strangers = [
            f"f{n}" for fact in asked.value for n in fact.supersedes if not _is_known(n, request)
        ]
        remarks = note_repairs(strangers, "fact is not known", "facts are not known")
        return Answer(claims, asked.usage, asked.remarks + remarks)


def _claim_of(fact: ParsedFact, request: ReflectRequest) -> Claim:
    keys = tuple(request.facts[n - 1].key for n in fact.supersedes if _is_known(n, request))
    return Claim(clip(fact.text, _FACT_LIMIT), fact.messages, keys)


def _is_known(number: int, request: ReflectRequest) -> bool:
    return 1 <= number <= len(request.facts)


def build_reflector_prompt(request: ReflectRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt of a reflection; what is new stands last.

    Every message is in it, long ones in part if need be: one that is not shown is never
    reflected upon. Of the known facts, the newest that fit a third of the room, each with its
    place in the request as its number.
    """
    counter, language = window.counter, request.language
    words = get_wording(language)
    room = window.room("reflector", language)
    known = [f"[f{number}] {one_line(fact.text)}" for number, fact in enumerate(request.facts, 1)]
    cut = count_left_out([counter.text(line) + 1 for line in known], room // 3, 1)
    listed = "\n".join(known[cut:]) or words.nothing
    spare = room - counter.text(listed)
    formatter = TranscriptFormatter(counter, max(SMALLEST, spare // 4), language)
    shown = formatter.format_messages(request.records)
    if sum(counter.text(line) + 1 for line in shown) > spare:
        share = max(SMALLEST, spare // max(1, len(request.records)))
        shown = TranscriptFormatter(counter, share, language).format_messages(request.records)
    return window.messages(
        "reflector",
        language,
        f"{words.known_facts}\n{listed}",
        "\n".join(shown) or words.nothing,
    )


def parse_reflection(text: str) -> tuple[ParsedFact, ...]:
    """The facts of a reflector's answer; none if it says that there are none.

    Raises:
        UnusableAnswerError: If there is neither a fact nor an empty result.
    """
    return first_of(text, "reflection", _facts_of_tags, _facts_of_json)


def _facts_of_tags(text: str) -> tuple[ParsedFact, ...] | None:
    facts = _parse_facts(find_elements(text, "fact", "reflection"))
    return facts if facts or has_tag(text, "reflection") else None


def _facts_of_json(text: str) -> tuple[ParsedFact, ...] | None:
    for value in find_json_values(text):
        listed = value.get("facts") if isinstance(value, dict) else value
        if isinstance(listed, list):
            entries = (Element(stringify_values(entry), "") for entry in listed)
            facts = _parse_facts(entries)
            if facts or not listed:
                return facts
    return None


def _parse_facts(found: Iterator[Element]) -> tuple[ParsedFact, ...]:
    return tuple(fact for element in islice(found, _MOST) if (fact := _parse_fact(element)))


def _parse_fact(element: Element) -> ParsedFact | None:
    said = element.field("text", "fact", "statement") or unescape(element.body)
    text = " ".join(said.split())
    if not text:
        return None
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "messages", "id")
    return ParsedFact(
        text,
        parse_message_ids(ids, _WIDEST),
        parse_fact_numbers(element.field("supersedes", "replaces")),
    )


def parse_fact_numbers(text: str) -> tuple[int, ...]:
    """Numbers of known facts in a text: `f2`, `[F2]`, `fact 2`, lists of these, or a bare `2`."""
    numbers = [int(n) for n in _FACT_ID.findall(text[:400])]
    bare = _BARE.fullmatch(text[:400])
    return tuple(dict.fromkeys(numbers or ([int(bare[1])] if bare else [])))


class EmbeddedReflector(LocalRole[ReflectRequest, tuple[Claim, ...]]):
    """Quotes sentences by their form; it understands nothing and concludes nothing.

    A new name, age or home takes the place of the one that was known; all else stands beside
    what is known.
    """

    def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
        """Find the statements that the user makes of himself or herself."""
        known = [
            (frame, _speaker_of(f.text), f.key)
            for f in request.facts
            if (frame := _frame_of_fact(f))
        ]
        claims: list[Claim] = []
        for record in request.records:
            if record.role != "user":
                continue
            for sentence in find_statements(record.text):
                text = f"{record.speaker}: {sentence}" if record.speaker else sentence
                frame = find_frame(sentence)
                same = (key for f, who, key in known if (f, who) == (frame, record.speaker or ""))
                claims.append(Claim(text, (record.id,), tuple(same) if frame else ()))
                if frame:
                    known.append((frame, record.speaker or "", Fact(text, (), "").key))
        return Answer(tuple(_merge_repeated(claims)))


def _merge_repeated(claims: Sequence[Claim]) -> list[Claim]:
    """Claims, those of the same words as one."""
    found: dict[str, Claim] = {}
    for claim in claims:
        said = found.pop(claim.text, None)
        messages = (*said.messages, *claim.messages) if said else claim.messages
        found[claim.text] = Claim(claim.text, tuple(dict.fromkeys(messages)), claim.supersedes)
    return list(found.values())


def _frame_of_fact(fact: Fact) -> str:
    return find_frame(_sentence_of(fact.text))


def _speaker_of(text: str) -> str:
    """The speaker named before a colon; "" in a sentence without one."""
    return text.partition(": ")[0] if ": " in text else ""


def _sentence_of(text: str) -> str:
    return text.partition(": ")[2] or text


REFLECTOR: RoleSpec[Reflector] = RoleSpec(
    name="reflector",
    purpose="finds what is worth knowing about the user for good, in a reflection",
    answers=tuple,
    items=Claim,
    chat=ChatReflector,
    embedded=lambda embedder: EmbeddedReflector(),
)
