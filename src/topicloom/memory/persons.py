"""`PersonMemory`: everything that is kept of one user, to show, to export and to delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.access import open_facts
from topicloom.memory.expiry import Expired, expire_step
from topicloom.memory.purge import delete_person
from topicloom.memory.stored import Graph, find_deps
from topicloom.memory.values import read_day
from topicloom.reflection.fact_spans import FactSpan, ThreadFact, find_spans
from topicloom.reflection.persons import end_day
from topicloom.state.persons import find_person, make_person
from topicloom.state.retention import RetentionPolicy
from topicloom.state.session import Session
from topicloom.state.zones import find_zone, place_in_zone
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import read_tips


@dataclass(frozen=True, slots=True)
class PersonThread:
    """A thread of a user."""

    thread: str
    scope: str
    """"" for none."""
    messages: int
    """Messages of all branches."""
    topics: int
    facts: int
    first: str
    """When its first message was said, ISO 8601."""
    last: str
    """When its last message was said, likewise."""


@dataclass(frozen=True, slots=True)
class DeletionReceipt:
    """What was deleted of a user, in numbers: no names and no texts."""

    deleted: str
    """When, ISO 8601."""
    threads: int
    messages: int
    topics: int
    facts: int
    left: tuple[str, ...] = ()
    """Where what was deleted may still be found, a sentence each; empty where all of it is gone."""


class PersonMemory:
    """Everything of one user over all threads and scopes. Each method has an async form: `ashow`.

        person = PersonMemory(graph, "ann")
        receipt = person.delete()

    It looks through all sessions of the storage: whose they are stands in each of them.
    """

    def __init__(self, graph: Graph, user_id: str) -> None:
        """A user by a graph.

        Args:
            graph: The compiled session graph, or an agent with `TopicMiddleware`, with the store
                that holds the facts.
            user_id: The user.

        Raises:
            InputError: The graph is neither, or the name can be no user's.
        """
        person = make_person(user_id)
        if person is None:
            raise InputError("name the user: '' is nobody")
        self.user = person.user
        self._graph, self._deps = graph, find_deps(graph)
        self._storage = self._deps.workspaces.choose_storage(graph.store)
        self._facts_store = open_facts(graph.store)

    def _threads(self) -> Step[list[PersonThread]]:
        """The user's threads, those with the newest message first."""
        yield from ()
        found = (self._describe(*one) for one in self._find())
        return sorted(found, key=lambda thread: (thread.last, thread.thread), reverse=True)

    def _facts(self, at: str | date | None = None) -> Step[list[FactSpan]]:
        """The facts of the user in all scopes that hold on a day, or now.

        Args:
            at: The day, `2026-03-01`; now if not given.

        Raises:
            InputError: The day cannot be read.
        """
        spans = yield from self._fact_spans()
        day = None if at is None else read_day(at, date.max)
        here = place_in_zone(self._deps.clock(), (yield from self._timezone()))
        now = end_day(day, here).timestamp()
        return [span for span in spans if span.holds_at(now)]

    def _fact_spans(self) -> Step[list[FactSpan]]:
        """All facts of the user in all scopes, with the spans in which they hold.

        Each scope is shown as its threads see it; a fact that several scopes see stands once.
        """
        yield from ()
        kept = self._facts_store
        threads = {name: tip.scope for name, _, tips in self._find() for tip in tips[-1:]}
        facts = [
            ThreadFact(name, scope, fact)
            for name, scope in threads.items()
            for fact in kept.facts(name).values()
        ]
        spans = dict[FactSpan, None]()
        for scope in sorted({"", *threads.values()}):
            seen = [fact for fact in facts if fact.scope in ("", scope)]
            spans |= dict.fromkeys(s for s in find_spans(seen) if s.scope == scope)
        return list(spans)

    def _timezone(self) -> Step[str]:
        """Where the user is, such as `Europe/Paris`; "" if it was never said."""
        yield from ()
        return self._facts_store.timezone(self.user)

    def _set_timezone(self, timezone: str) -> Step[None]:
        """Say where the user is in all threads that never said it, from their next turn on.

        Args:
            timezone: Such as `Europe/Paris`; "" for where the setting says.

        Raises:
            InputError: There is no such zone, or the graph has no store to keep it in.
        """
        yield from ()
        if self._graph.store is None:
            raise InputError("a user's time zone is kept in a store: compile the graph with one")
        self._facts_store.set_timezone(self.user, find_zone(timezone).key if timezone else "")

    def _export(self) -> Step[list[dict[str, Any]]]:
        """Everything of the user as JSON rows, each with a `kind`: where the user is, threads,
        messages word for word, topics, facts.

        Messages that were edited or are on branches are among them.
        """
        rows = list[dict[str, Any]]()
        if zone := (yield from self._timezone()):
            rows.append({"kind": "user", "user": self.user, "timezone": zone})
        for found in (yield from self._threads()):
            rows.append({"kind": "thread", "thread": found.thread, "scope": found.scope})
        for name, store, tips in self._find():
            rows += (
                {"kind": "message", "thread": name, **row} for row in _list_messages(store, tips)
            )
            topics = {t.id: t for tip in tips for t in store.topic_table(tip)}
            rows += (
                {"kind": "topic", "thread": name, "id": t.id, "name": t.name, "brief": t.brief}
                for t in topics.values()
            )
        spans = yield from self._fact_spans()
        rows += ({"kind": "fact", **span.value} for span in spans)
        return rows

    def _expire(
        self, policy: RetentionPolicy | None = None, *, dry_run: bool = False
    ) -> Step[dict[str, Expired]]:
        """End what is too old in all threads of the user, by thread; those with nothing are left
        out. Call it while no turn of the user runs.

        Args:
            policy: How many days what is kept: `RetentionPolicy(messages=30)` keeps nothing that is
                older. By the settings of the graph if not given.
            dry_run: True to remove nothing, and only say what would go.

        Raises:
            InputError: Nothing ever ends, or a turn is not finished.
            SessionBusyError: A thread is in use.
        """
        ended = dict[str, Expired]()
        for name, _, _ in list(self._find()):
            ended[name] = yield from expire_step(self._graph, name, policy, dry_run=dry_run)
        return {name: one for name, one in ended.items() if one}

    def _delete(self) -> Step[DeletionReceipt]:
        """Delete everything of the user for good: threads with their checkpoints, and facts.

        Killed on the way, the same call finishes. Call it while no turn of the user runs.

        Raises:
            SessionBusyError: A thread is in use.
            StorageUnavailableError: Nothing can be removed there.
        """
        threads = yield from self._threads()
        known = self._facts_store.threads(self.user)
        names = list(dict.fromkeys([*(t.thread for t in threads), *known]))
        left = yield from delete_person(self._graph, self.user, names, self._storage.lock)
        return DeletionReceipt(
            deleted=self._deps.clock().isoformat(timespec="seconds"),
            threads=len(names),
            messages=sum(t.messages for t in threads),
            topics=sum(t.topics for t in threads),
            facts=sum(t.facts for t in threads),
            left=left,
        )

    def _find(self) -> Iterator[tuple[str, SessionStore, list[Session]]]:
        """The user's threads, with their storage and the tips of their branches."""
        for name in self._storage.sessions():
            store = SessionStore(self._storage.open(name))
            tips = [tip.session for tip in read_tips(store)]
            owner = find_person(tips)
            if owner is not None and owner.user == self.user:
                yield name, store, [t.model_copy(update={"scope": owner.scope}) for t in tips]

    def _describe(self, name: str, store: SessionStore, tips: list[Session]) -> PersonThread:
        said = list(_list_messages(store, tips))
        times = sorted(str(row["time"]) for row in said) or [""]
        return PersonThread(
            thread=name,
            scope=tips[-1].scope,
            messages=len(said),
            topics=len({t.id for tip in tips for t in store.topic_table(tip)}),
            facts=len(self._facts_store.facts(name)),
            first=times[0],
            last=times[-1],
        )

    threads, athreads = both(_threads)
    facts, afacts = both(_facts)
    fact_spans, afact_spans = both(_fact_spans)
    timezone, atimezone = both(_timezone)
    set_timezone, aset_timezone = both(_set_timezone)
    export, aexport = both(_export)
    expire, aexpire = both(_expire)
    delete, adelete = both(_delete)


def _list_messages(store: SessionStore, tips: list[Session]) -> Iterator[dict[str, Any]]:
    """The messages of all branches, each once, as JSON data."""
    seen = set[str]()
    for tip in tips:
        refs = store.transcript_refs(tip)
        fresh = [n for n, ref in enumerate(refs, 1) if ref not in seen]
        seen.update(refs)
        for message in store.originals(tip, fresh[0]) if fresh else ():
            if message.seq in fresh:
                yield message.model_dump(mode="json", exclude_defaults=True)
