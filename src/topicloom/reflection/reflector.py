"""The reflector: it finds facts about the user that are worth keeping."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.transcript import TranscriptFormatter
from topicloom.context.windows import SMALLEST, PromptWindow, count_left_out
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.reflection.facts import Claim, Fact
from topicloom.reflection.statements import find_frame, find_statements
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import (
    Element,
    find_elements,
    find_json_values,
    first_of,
    has_tag,
    stringify_values,
    unescape,
)
from topicloom.roles.values import note_repairs, parse_message_ids
from topicloom.state.fence import fence_line
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage

_FACT_LIMIT = 300
"""Characters of a fact: one sentence."""
_MOST = 200
_MOST_NAMED = 64
"""Messages that one fact may rest on."""
_FACT_ID = re.compile(r"(?<![a-z0-9])f(?:act)?[\s_#.:-]{0,3}([0-9]{1,9})(?![0-9])", re.I)
_BARE = re.compile(r"\A[\s\[(]*([0-9]{1,9})[\s\])]*\Z")


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """A stretch of conversation to reflect upon."""

    session: str
    messages: Sequence[StoredMessage]
    """The stretch, in order."""
    facts: Sequence[Fact]
    """The facts known about the user, in order; a new one may take the place of one."""
    language: Language


class Reflector(Role[ReflectRequest, tuple[Claim, ...]], Protocol):
    """Finds facts about the user that are worth keeping, in order; they are checked elsewhere."""


class ChatReflector(ChatRole[ReflectRequest, tuple[Claim, ...]]):
    """Reflects upon a stretch of conversation."""

    role = "reflector"

    def step(self, request: ReflectRequest) -> Step[Answer[tuple[Claim, ...]]]:
        """Find the facts; numbers that no known fact has are dropped."""
        prompt = build_reflector_prompt(request, self._chat.prompt_window)
        asked = yield from self.ask(request, "reflector", prompt, parse_reflection, "<reflection>")
        keys = {f"f{number}": fact.key for number, fact in enumerate(request.facts, 1)}
        claims = tuple(
            replace(claim, supersedes=tuple(keys[n] for n in claim.supersedes if n in keys))
            for claim in asked.value
        )
        unknown = [n for claim in asked.value for n in claim.supersedes if n not in keys]
        repairs = note_repairs(unknown, "fact is not known", "facts are not known")
        return Answer(claims, remarks=asked.remarks + repairs)


def build_reflector_prompt(request: ReflectRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt of a reflection; what is new stands last.

    Every message is in it, long ones in part if need be: one that is not shown is never
    reflected upon. Of the known facts, the newest that fit a third of the room are in it.
    """
    counter, language = window.counter, request.language
    words = get_wording(language)
    room = window.room("reflector", language)
    known = [f"[f{number}] {fence_line(fact.text)}" for number, fact in enumerate(request.facts, 1)]
    cut = count_left_out([counter.text(line) + 1 for line in known], room // 3, 1)
    listed = "\n".join(known[cut:]) or words.nothing
    spare = room - counter.text(listed)
    # A name alone says that the words are another's.
    messages = [
        m.model_copy(update={"speaker": f"{m.role} {m.speaker}"})
        if m.speaker and not m.of_another
        else m
        for m in request.messages
    ]
    for parts in (4, max(1, len(request.messages))):
        formatter = TranscriptFormatter(counter, max(SMALLEST, spare // parts), language)
        shown = formatter.format_messages(messages)
        if sum(counter.text(line) + 1 for line in shown) <= spare:
            break
    said = "\n".join(shown) or words.nothing
    return window.messages("reflector", language, f"{words.known_facts}\n{listed}", said)


def parse_reflection(text: str) -> tuple[Claim, ...]:
    """The facts of a reflector's answer; none if it says that there are none.

    Known ones that they supersede are named as the prompt numbers them, `f2`.

    Raises:
        UnusableAnswerError: If there is neither a fact nor an empty result.
    """
    return first_of(text, "reflection", _facts_of_tags, _facts_of_json)


def _facts_of_tags(text: str) -> tuple[Claim, ...] | None:
    facts = _parse_facts(find_elements(text, "fact", "reflection"))
    return facts if facts or has_tag(text, "reflection") else None


def _facts_of_json(text: str) -> tuple[Claim, ...] | None:
    for value in find_json_values(text):
        listed = value.get("facts") if isinstance(value, dict) else value
        if isinstance(listed, list):
            facts = _parse_facts(Element(stringify_values(entry), "") for entry in listed)
            if facts or not listed:
                return facts
    return None


def _parse_facts(found: Iterable[Element]) -> tuple[Claim, ...]:
    return tuple(fact for element in islice(found, _MOST) if (fact := _parse_fact(element)))


def _parse_fact(element: Element) -> Claim | None:
    said = element.field("text", "fact", "statement") or unescape(element.body)
    text = " ".join(said.split())
    if not text:
        return None
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "messages", "id")
    superseded = parse_fact_ids(element.field("supersedes", "replaces"))
    since, until = element.field("since", "from"), element.field("until", "to")
    messages = parse_message_ids(ids, _MOST_NAMED)
    return Claim(clip(text, _FACT_LIMIT), messages, superseded, since[:10], until[:10])


def parse_fact_ids(text: str) -> tuple[str, ...]:
    """Ids of known facts in a text: `f2`, `[F2]`, `fact 2`, lists of these, or a bare `2`."""
    numbers = _FACT_ID.findall(text[:400]) or _BARE.findall(text[:400])
    return tuple(dict.fromkeys(f"f{int(number)}" for number in numbers))


class EmbeddedReflector(LocalRole[ReflectRequest, tuple[Claim, ...]]):
    """Quotes sentences by their form; it concludes nothing from them.

    A new name, age or home takes the place of the one that was known; all else stands beside
    what is known.
    """

    def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
        """Find the statements that the user makes of himself or herself."""
        known: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for fact in request.facts:
            speaker, _, sentence = fact.text.partition(": ")
            known[speaker if sentence else "", find_frame(sentence or fact.text)].append(fact.key)
        claims: list[Claim] = []
        for message in request.messages:
            speaker = message.speaker or ""
            for sentence in find_statements(message.text) if message.of_user else ():
                text = f"{speaker}: {sentence}" if speaker else sentence
                frame = find_frame(sentence)
                replaced = known[speaker, frame]
                claims.append(Claim(text, (message.id,), tuple(replaced) if frame else ()))
                replaced.append(Fact(text, (), "").key)
        return Answer(tuple(_merge_repeated(claims)))


def _merge_repeated(claims: Sequence[Claim]) -> list[Claim]:
    found: dict[str, Claim] = {}
    for claim in claims:
        said = found.pop(claim.text, None)
        messages = (*said.messages, *claim.messages) if said else claim.messages
        found[claim.text] = Claim(claim.text, tuple(dict.fromkeys(messages)), claim.supersedes)
    return list(found.values())


REFLECTOR: RoleSpec[Reflector] = RoleSpec(
    name="reflector",
    purpose="finds what is worth knowing about the user for good, in a reflection",
    answer_tokens=4_000,
    answers=tuple,
    items=Claim,
    chat=ChatReflector,
    embedded=lambda embedder: EmbeddedReflector(),
)
