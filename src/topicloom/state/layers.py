"""Layers of context that the application's domain adds to a prompt (spec 004, 5.2 and 6.6).

A deterministic layer is the skeleton: facts that are exact. It is entered whole once, and later
only those of its elements that changed. A probabilistic layer is what a curation picked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from topicloom.state.curation import Curation, Entry

_OPENING = re.compile(r"^<([A-Za-z_][\w-]*)(?: [^<>]*)?>$", re.MULTILINE)


class Layer(BaseModel):
    """One layer, as a note of the ledger keeps it."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["deterministic", "probabilistic"]
    """How far it can be relied on."""
    text: str = ""
    """Of a skeleton: its elements."""
    since: str = ""
    """Of a skeleton that gives changes only: short id of the message behind which the skeleton
    before it stands."""
    entries: tuple[Entry, ...] = ()
    """Of a curation: what was picked, best first."""
    rationale: str = ""
    """Of a curation: why."""
    model: str = ""
    """Of a curation: who picked."""


def skeleton_layer(text: str, shown: Sequence[tuple[int, Layer]]) -> Layer | None:
    """What has to be said so that the prompt shows a skeleton; None if it does already.

    Args:
        text: The skeleton as it is now.
        shown: The layers in view, oldest first, each with the number of the message that it stands
            behind.
    """
    behind = [(after, layer) for after, layer in shown if layer.kind == "deterministic"]
    if not behind:
        return Layer(kind="deterministic", text=text) if text else None
    known: dict[str, str] = {}
    for _, layer in behind:
        known = (known if layer.since else {}) | elements_of(layer.text)
    now = elements_of(text)
    changed = [element for name, element in now.items() if known.get(name) != element]
    # An element that is not there any more is shown empty.
    gone = [_empty(name) for name in known if name not in now and known[name] != _empty(name)]
    if not changed and not gone:
        return None
    if len(changed) == len(now):
        return Layer(kind="deterministic", text=text)
    since = f"m{behind[-1][0]}"
    return Layer(kind="deterministic", text="\n".join([*changed, *gone]), since=since)


def elements_of(text: str) -> dict[str, str]:
    """The elements of a skeleton by name, and what stands outside of them under "".

    An element begins and ends with a tag that has a line to itself. No text of a document looks
    like one, because `<` is escaped in all of them.
    """
    found: dict[str, str] = {}
    outside: list[str] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        name = opening[1]
        closing = re.compile(rf"^</{re.escape(name)}>$", re.MULTILINE).search(text, opening.end())
        end = closing.end() if closing else opening.end()
        if closing is not None:
            element = text[opening.start() : end]
            found[name] = f"{found[name]}\n{element}" if name in found else element
        outside.append(text[at : opening.start() if closing else end])
        at = end
    rest = "".join([*outside, text[at:]]).strip()
    return found | ({"": rest} if rest else {})


def curated_layer(curation: Curation) -> Layer | None:
    """The layer of a curation; None if it found nothing."""
    if not curation.entries:
        return None
    return Layer(
        kind="probabilistic",
        entries=curation.entries,
        rationale=curation.rationale,
        model=curation.model,
    )


def _empty(name: str) -> str:
    return f"<{name}>\n</{name}>" if name else ""
