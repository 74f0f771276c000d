"""Ending what is too old, by a policy: a session's messages, receipts and facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.access import Access, open_access
from topicloom.memory.stored import Graph, find_deps, find_storage
from topicloom.memory.values import Forgotten
from topicloom.nodes.runs import name_thread
from topicloom.reflection.ending import end_facts
from topicloom.state.retention import RetentionPolicy, is_before
from topicloom.storage.expiry import plan_expiry


@dataclass(frozen=True, slots=True)
class Expired(Forgotten):
    """What of a session was too old and is gone for good, or would go."""

    receipts: int = 0
    """Receipts of which only the number and the time of the turn are left."""

    def __bool__(self) -> bool:
        """True if anything was too old."""
        return bool(self.messages or self.facts or self.receipts)


def end_old(
    access: Access, policy: RetentionPolicy | None = None, *, dry_run: bool = False
) -> Step[Expired]:
    """Within a step: end what is too old by a policy, or by the settings of the graph.

    Raises what `Memory.expire` does.
    """
    opened = yield from access.open()
    if policy is None and access.graph is not None:
        policy = find_deps(access.graph).settings.retention
    if policy is None or not policy.ends_anything:
        raise InputError(
            "nothing ends: say how many days to keep, as RetentionPolicy(messages=90) or"
            " TOPICLOOM_RETENTION__MESSAGES=90"
        )
    cutoffs = policy.find_cutoffs(access.clock(), opened.session.user_id)
    plan, said, receipts = plan_expiry(opened.store.log, opened.session, cutoffs)
    kept, thread = access.facts, access.thread
    known = kept.facts(thread)
    changes = end_facts(known, {m.id for m in said}, cutoffs)
    facts = {key: known[key] for key in changes.retired}
    ended = Expired(said, plan.topics, facts, receipts=receipts)
    if dry_run:
        return ended
    watched = access.telemetry.watch_memory("delete_memory", thread)
    with watched as work, kept.hold_lease(thread):
        work.attributes["gen_ai.memory.record.count"] = len(said)
        end = partial(kept.end, thread, changes)
        return replace(ended, left=(yield from access.purge(plan, end)))


def expire_step(
    graph: Graph,
    thread_id: str,
    policy: RetentionPolicy | None = None,
    *,
    dry_run: bool = False,
    silent_for: float = 0.0,
) -> Step[Expired]:
    """End what is too old in a session, if anything is, while nothing else holds the session.

    Unlike `Memory.expire` it writes nothing where nothing is too old, so it may run often.

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        thread_id: The thread.
        policy: How long what is kept; the graph's settings if not given.
        dry_run: True to remove nothing.
        silent_for: Seconds for which nobody may have said anything; else nothing ends.

    Raises:
        InputError: A turn of the session is not finished, or nothing ever ends.
        SessionBusyError: Another holds it.
    """
    access = open_access(graph, name_thread(thread_id))
    ended = yield from end_old(access, policy, dry_run=True)
    session, store, _ = yield from access.open()
    since = access.clock().timestamp() - silent_for
    silent = not session.count or is_before(store.message(session, session.count).time, since)
    if dry_run or not ended or not silent:
        return ended if dry_run else Expired((), (), {})
    with find_storage(graph).lock(thread_id):
        return (yield from end_old(access, policy))


expire_due, aexpire_due = both(expire_step)
