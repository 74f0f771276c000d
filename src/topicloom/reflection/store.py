"""Facts and progress of reflection, in a LangGraph store.

    (topicloom, <session>, facts)   key of the fact -> {"fact", "messages", "at", "refs"}
    (topicloom, %owners)            session -> the user and the scope that it belongs to
    (topicloom, %people, <user>)    session -> its facts, as the user's other sessions see them
    (topicloom, %zones)             user -> the time zone of its threads that never said one
    (topicloom, %reflected)         session -> how far it was reflected upon
    (topicloom, %talks, <user>)     session -> its profile; see `storage/thread_profiles.py`
    (topicloom, %reflecting, <session>)  its leases; see `leases.py`

The first is for the application to read and search; the others are our own. What is kept of a user
is a copy, an item a session, so that nobody writes what another writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from langgraph.store.base import PutOp
from pydantic import BaseModel

from topicloom.reflection.due import ReflectionProgress
from topicloom.reflection.fact_spans import ThreadFact
from topicloom.reflection.facts import Fact, FactChanges
from topicloom.reflection.leases import Leases
from topicloom.state.persons import Person, sees
from topicloom.storage.store_items import (
    PREFIX,
    M,
    Namespace,
    clean,
    delete_items,
    items_at,
    items_in,
    label,
    read_item,
)
from topicloom.storage.thread_profiles import delete_profile, delete_profiles, forget_profile

_OWNERS, _ZONES = "%owners", "%zones"


class ReflectionStore(Leases):
    """The store of reflection, for all sessions. Safe for several threads and processes."""

    def facts_namespace(self, session: str) -> Namespace:
        """The namespace of a session's facts: `("topicloom", <session>, "facts")`."""
        return (PREFIX, label(session), "facts")

    def facts(self, session: str) -> dict[str, Fact]:
        """Facts of a session by key, those that were said first in front.

        Items that hold no fact, as after an edit by hand, are passed over.
        """
        with self._lock:
            items = list(items_in(self.store, self.facts_namespace(session)))
        read = {item.key: Fact.of(item.value) for item in items}
        found = {key: fact for key, fact in read.items() if fact is not None}
        return dict(sorted(found.items(), key=lambda pair: (pair[1].at, pair[0])))

    def change_facts(self, session: str, changes: FactChanges) -> None:
        """Write new facts, indexed for search where the store does so, and remove old ones."""
        namespace = self.facts_namespace(session)
        ops = [PutOp(namespace, f.key, clean(f.value)) for f in changes.written]
        ops += [PutOp(namespace, key, None) for key in changes.retired]
        if not ops:
            return
        person = self.person(session)
        if person is not None and changes.retired:  # what goes, goes for others first
            shared = self._read_shared(session, person)
            self.share(session, [f for f in shared if f.key not in changes.retired])
        with self._lock:
            self.store.batch(ops)
        if person is not None and changes.written:
            known = {fact.key: fact for fact in self._read_shared(session, person)}
            self.share(session, (known | {f.key: f for f in changes.written}).values())

    def person(self, session: str) -> Person | None:
        """The person that a session belongs to, as far as anything is kept of its facts."""
        owner = self._read(_Owner, (PREFIX, _OWNERS), session)
        return Person(owner.user, owner.scope) if owner else None

    def set_person(self, session: str, person: Person) -> None:
        """Set the user of a session: from then on its facts are the user's."""
        owner = _Owner(session=session, user=person.user, scope=person.scope)
        if self.person(session) != person:
            self._put_own((PREFIX, _OWNERS), label(session), owner.model_dump())

    def share(self, session: str, facts: Iterable[Fact]) -> None:
        """Write which of a session's facts the user's other sessions see, if it is a user's."""
        person = self.person(session)
        if person is not None:
            rows = tuple(fact.value for fact in facts)
            shared = _Shared(session=session, user=person.user, scope=person.scope, facts=rows)
            if self._read_shared(session, person) != shared.read_facts():
                people = _find_people(person.user)
                self._put_own(people, label(session), shared.model_dump())

    def _read_shared(self, session: str, person: Person) -> list[Fact]:
        shared = self._read(_Shared, _find_people(person.user), session)
        return shared.read_facts() if shared else []

    def shared_facts(self, person: Person, but: str = "") -> list[ThreadFact]:
        """The facts of a user's sessions that one in the person's scope may see, `but` its own."""
        read = self._read_all(_Shared, _find_people(person.user))
        # A label may be of several very long names: the names themselves are compared.
        of_user = [s for s in read if s.user == person.user and s.session != but]
        return [
            ThreadFact(shared.session, shared.scope, fact)
            for shared in of_user
            if sees(person.scope, shared.scope)
            for fact in shared.read_facts()
        ]

    def threads(self, user: str) -> dict[str, Person]:
        """The sessions of a user of which facts are kept, whatever their scope."""
        owners = self._read_all(_Owner, (PREFIX, _OWNERS))
        return {o.session: Person(o.user, o.scope) for o in owners if o.user == user}

    def timezone(self, user: str) -> str:
        """Where a user is, such as `Europe/Paris`; "" if it was never said."""
        place = self._read(_Place, (PREFIX, _ZONES), user)
        return place.timezone if place and place.user == user else ""

    def set_timezone(self, user: str, timezone: str) -> None:
        """Keep where a user is; "" for nowhere."""
        place = _Place(user=user, timezone=timezone)
        self._put_own((PREFIX, _ZONES), label(user), place.model_dump())

    def delete_person(self, user: str) -> None:
        """Remove where the user is, and what its sessions see of one another, once they are all
        deleted."""
        people = _find_people(user)
        with self._lock:
            items = list(items_in(self.store, people))
            known = {item.key: read_item(_Shared, item) for item in items}
            left = [key for key, shared in known.items() if shared is None or shared.user == user]
            delete_items(self.store, people, left)
            delete_profiles(self.store, user)
            if self.timezone(user):
                delete_items(self.store, (PREFIX, _ZONES), [label(user)])

    def progress(self, session: str) -> ReflectionProgress:
        """The progress of a session; of a damaged item, as if there were none."""
        progress = self._read(ReflectionProgress, (PREFIX, "%reflected"), session)
        return progress or ReflectionProgress()

    def save_progress(self, session: str, progress: ReflectionProgress) -> None:
        self._put_own((PREFIX, "%reflected"), label(session), progress.model_dump(mode="json"))

    def forget(self, session: str, messages: Collection[str]) -> dict[str, Fact]:
        """Remove what rests on messages that are to be purged; returns those facts, by key.

        A fact goes if any of the messages that it rests on does, for its words may be from any of
        them. Messages on other branches have the same short ids; what rests on those goes too.
        """
        gone = self.find_resting_on(session, messages)
        stay = [f for key, f in self.facts(session).items() if key not in gone]
        puts = [replace(f, replaces=tuple(k for k in f.replaces if k not in gone)) for f in stay]
        changed = tuple(new for old, new in zip(stay, puts, strict=True) if new != old)
        self.end(session, FactChanges(changed, tuple(gone)))
        return gone

    def end(self, session: str, changes: FactChanges) -> None:
        """Change facts because messages end, of which the session's profile tells no more."""
        if (person := self.person(session)) is not None:
            with self._lock:
                forget_profile(self.store, person, session)
        self.change_facts(session, changes)

    def delete(self, session: str) -> None:
        """Remove all that is kept of a session: its facts and its progress."""
        facts, person = self.facts_namespace(session), self.person(session)
        with self._lock:
            if person is not None:
                delete_items(self.store, _find_people(person.user), [label(session)])
                delete_profile(self.store, person, session)
            keys = [item.key for item in items_in(self.store, facts)]
            delete_items(self.store, facts, keys)
            for own in ("%reflected", _OWNERS):
                delete_items(self.store, (PREFIX, own), [label(session)])

    def find_resting_on(self, session: str, messages: Collection[str]) -> dict[str, Fact]:
        """The facts that rest on any of some messages, by key."""
        facts = self.facts(session).items()
        return {key: fact for key, fact in facts if not set(messages).isdisjoint(fact.messages)}

    def _read(self, kind: type[M], place: Namespace, name: str) -> M | None:
        """What is kept under a name; None where nothing is, or something damaged."""
        with self._lock:
            items = items_at(self.store, place, [label(name)])
        return next((read_item(kind, item) for item in items), None)

    def _read_all(self, kind: type[M], place: Namespace) -> list[M]:
        with self._lock:
            items = list(items_in(self.store, place))
        return [read for item in items if (read := read_item(kind, item)) is not None]


def _find_people(user: str) -> Namespace:
    return (PREFIX, "%people", label(user))


class _Place(BaseModel, frozen=True):
    """Where a user is."""

    user: str
    timezone: str


class _Owner(BaseModel, frozen=True):
    """The user and the scope of a session."""

    session: str
    user: str
    scope: str = ""


class _Shared(_Owner, frozen=True):
    """The facts of a session as the other sessions of its user see them."""

    facts: tuple[dict[str, Any], ...] = ()

    def read_facts(self) -> list[Fact]:
        return [fact for value in self.facts if (fact := Fact.of(value)) is not None]
