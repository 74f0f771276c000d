"""Facts of the user as `Memory` shows, corrects and forgets them, in all threads that keep one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime

from topicloom.effects import Step
from topicloom.errors import InputError
from topicloom.memory.access import Access, OpenSession
from topicloom.memory.freed_pages import rewrite_files
from topicloom.reflection.fact_spans import list_said
from topicloom.reflection.facts import Fact, FactChanges, Said
from topicloom.reflection.persons import end_day, find_facts, see_facts, to_fact
from topicloom.state.persons import get_person


def read_facts(access: Access, opened: OpenSession, day: date | None) -> dict[str, Fact]:
    """The facts that hold on a day, by key; None for now."""
    now = end_day(day, opened.session.place(access.clock())).timestamp()
    return find_facts(access.facts, opened.store, opened.session, now)


def get_fact(access: Access, opened: OpenSession, key: str) -> Fact:
    """The fact of that key, whether it holds now or not, or InputError."""
    spans = see_facts(access.facts, opened.store, opened.session)
    facts = {span.key: to_fact(span) for span in spans}
    if key not in facts:
        raise InputError("there is no fact {key!r}", key=key)
    return facts[key]


def correct_fact(access: Access, opened: OpenSession, key: str, text: str) -> str:
    """Say a fact in other words wherever it is kept, or as it is if there are none.

    Returns:
        Its key from then on.

    Raises:
        InputError: There is no such fact.
        SessionBusyError: A thread that keeps it is being reflected upon.
    """
    get_fact(access, opened, key)
    changes = {
        thread: _correct(old, text, access.clock())
        for thread, old in _find_holders(access, opened, key).items()
    }
    _change_facts(access, changes)
    return next((change.written[0].key for change in changes.values()), key)


def _correct(old: Fact, text: str, now: datetime) -> FactChanges:
    at = now.isoformat(timespec="seconds")
    new = replace(old, text=" ".join(text.split()) or old.text, at=at, held=False)
    same = new.key == old.key
    new = replace(new, said=(*list_said(old), Said(at, "")), quote=old.quote if same else "")
    retired = () if same else (old.key,)
    return FactChanges((replace(new, replaces=(*old.replaces, *retired)),), retired)


def forget_fact(access: Access, opened: OpenSession, key: str) -> Step[Fact]:
    """Within a step: remove a fact wherever it is kept, and return it.

    Raises what `correct_fact` does.
    """
    old = get_fact(access, opened, key)
    threads = _find_holders(access, opened, key)
    _change_facts(access, {thread: FactChanges(retired=(key,)) for thread in threads})
    yield from rewrite_files(access.facts.store)
    return old


def _find_holders(access: Access, opened: OpenSession, key: str) -> dict[str, Fact]:
    """The threads that keep a fact and that this one may see, each with it."""
    kept, person = access.facts, get_person(opened.session)
    others = kept.shared_facts(person, but=opened.session.id) if person else []
    found = {other.thread: other.fact for other in others if other.fact.key == key}
    own = kept.facts(access.thread)
    return found | ({access.thread: own[key]} if key in own else {})


def _change_facts(access: Access, changes: Mapping[str, FactChanges]) -> None:
    with ExitStack() as held:
        for thread in sorted(changes):
            held.enter_context(access.facts.hold_lease(thread))
        for thread, change in changes.items():
            access.facts.change_facts(thread, change)
