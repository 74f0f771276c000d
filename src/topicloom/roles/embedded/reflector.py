"""The embedded reflector: plain statements in the first person, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.roles.base import Answer, Local, Reflected, ReflectRequest
from topicloom.roles.embedded.statements import frame_of, statements_in
from topicloom.state.facts import Claim, Fact


class EmbeddedReflector(Local[ReflectRequest, Reflected]):
    """Quotes sentences by their form; it understands nothing and concludes nothing.

    A new name, age or home takes the place of the one that was known; all else stands beside
    what is known.
    """

    def call(self, request: ReflectRequest) -> Answer[Reflected]:
        """Find the statements that the user makes of himself or herself."""
        known = [(frame, _speaker(f.text), f.key) for f in request.facts if (frame := _frame(f))]
        claims: list[Claim] = []
        for record in request.records:
            if record.role != "user":
                continue
            for sentence in statements_in(record.text):
                text = f"{record.speaker}: {sentence}" if record.speaker else sentence
                frame = frame_of(sentence)
                same = (key for f, who, key in known if (f, who) == (frame, record.speaker or ""))
                claims.append(Claim(text, (record.id,), tuple(same) if frame else ()))
                if frame:
                    known.append((frame, record.speaker or "", Fact(text, (), "").key))
        return Answer(Reflected(tuple(_once(claims))))


def _once(claims: Sequence[Claim]) -> list[Claim]:
    """Claims, those of the same words as one."""
    found: dict[str, Claim] = {}
    for claim in claims:
        said = found.pop(claim.text, None)
        messages = (*said.messages, *claim.messages) if said else claim.messages
        found[claim.text] = Claim(claim.text, tuple(dict.fromkeys(messages)), claim.supersedes)
    return list(found.values())


def _frame(fact: Fact) -> str:
    return frame_of(_sentence(fact.text))


def _speaker(text: str) -> str:
    """Who is named before a colon; nobody in a sentence without one."""
    return text.partition(": ")[0] if ": " in text else ""


def _sentence(text: str) -> str:
    return text.partition(": ")[2] or text
