"""Facts that end because they, or what they rest on, are too old."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from topicloom.reflection.facts import Fact, FactChanges
from topicloom.state.retention import Cutoffs, is_before


def end_facts(
    facts: Mapping[str, Fact], messages: Collection[str], cutoffs: Cutoffs
) -> FactChanges:
    """The changes to a session's facts when messages end, and with them what rests on these alone.

    What was said again or confirmed later stays, without what it had of the old messages. Messages
    on other branches have the same short ids: those that a fact was said in later count as newer.
    """
    left, retired = list[Fact](), list[str]()
    for key, fact in facts.items():
        rests = not set(messages).isdisjoint(fact.messages)
        if is_before(fact.at, cutoffs.facts) or (rests and is_before(fact.at, cutoffs.messages)):
            retired.append(key)
        else:
            left.append(_keep_newer(fact, messages, cutoffs.messages) if rests else fact)
    shown = (replace(f, replaces=tuple(k for k in f.replaces if k not in retired)) for f in left)
    return FactChanges(tuple(f for f in shown if f != facts[f.key]), tuple(retired))


def _keep_newer(fact: Fact, messages: Collection[str], cutoff: float | None) -> Fact:
    said = tuple(one for one in fact.said if not is_before(one.time, cutoff))
    newer = {one.message for one in said}
    return replace(
        fact,
        said=said,
        messages=tuple(m for m in fact.messages if m in newer or m not in messages),
        quote=fact.quote if any(newer) else "",
    )
