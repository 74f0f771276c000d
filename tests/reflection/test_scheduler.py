"""The scheduler over sessions in memory: who is reflected upon, when, and how often."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from topicloom import ReflectionPolicy, ReflectionScheduler, ReflectionStore
from topicloom.hosting import DueState
from topicloom.reflection.due import ReflectionMark, ReflectionProgress

POLICY = ReflectionPolicy(tick_seconds=3_600)
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Memory:
    """Sessions in memory with leases in a real store; what is broken raises."""

    def __init__(self, store: InMemoryStore, clock: Clock, **pending: int) -> None:
        self.clock = clock
        self.found = {s: DueState(s, n, clock().timestamp()) for s, n in pending.items()}
        self.leases = ReflectionStore(store, pause=0.001)
        self.broken: set[str] = set()

    def list_sessions(self) -> list[str]:
        if "" in self.broken:
            raise OSError("no storage")
        return list(self.found)

    def get_state(self, session: str) -> DueState:
        if session in self.broken:
            raise OSError("cannot be read")
        return self.found[session]

    def acquire_lease(self, session: str, owner: str, since: float) -> bool:
        return self.leases.acquire_lease(session, owner, since, POLICY)

    def release_lease(self, session: str, owner: str) -> None:
        self.leases.release_lease(session, owner)

    def save_progress(self, session: str, progress: ReflectionProgress) -> None:
        self.found[session] = replace(self.found[session], progress=progress)

    def say(self, session: str, rounds: int = 1) -> None:
        found = self.found[session]
        at = self.clock().timestamp()
        self.found[session] = replace(found, pending=found.pending + rounds, last_at=at)


class Work:
    """Reflects by counting; fails, or waits for a signal, where it is told to."""

    def __init__(self, sessions: Memory) -> None:
        self.sessions = sessions
        self.done: Counter[str] = Counter()
        self.failing: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Event()
        self.now = self.most = 0

    async def __call__(self, session: str) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        self.begun.set()
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
            if session in self.failing:
                raise RuntimeError("out of order")
        finally:
            self.now -= 1
        self.done[session] += 1
        found = self.sessions.found[session]
        reached = found.progress.reach(ReflectionMark(upto=1, ref=str(self.done[session])))
        self.sessions.found[session] = replace(found, pending=0, progress=reached)
        return "done"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def beside(
    clock: Clock, policy: ReflectionPolicy = POLICY, **pending: int
) -> tuple[Memory, Work, ReflectionScheduler]:
    sessions = Memory(InMemoryStore(), clock, **pending)
    work = Work(sessions)
    return sessions, work, look_after(sessions, work, policy)


def look_after(
    sessions: Memory,
    reflect: Callable[[str], Awaitable[object]],
    policy: ReflectionPolicy = POLICY,
    review: Callable[[str], Awaitable[object]] | None = None,
) -> ReflectionScheduler:
    found: Any = sessions  # it does what those of a storage do
    return ReflectionScheduler(found, reflect, policy, sessions.clock, review=review)


async def settled(scheduler: ReflectionScheduler) -> int:
    """Tick, and wait for what it began."""
    begun = await scheduler.tick()
    await scheduler.wait_idle()
    return begun


async def test_a_tick_finds_who_is_due(clock: Clock) -> None:
    _, work, scheduler = beside(clock, busy=6, new=3, quiet=0)
    assert await scheduler.tick() == 1, "said also where none is begun"
    async with scheduler:
        await settled(scheduler)
        assert work.done == {"busy": 1}
        clock.wait(POLICY.idle_seconds)
        await settled(scheduler)  # or its own first tick, which may be late, finds the next one
        assert work.done == {"busy": 1, "new": 1}
        assert await settled(scheduler) == 0
    assert not scheduler.failures


async def test_a_session_that_goes_on_is_reviewed_once_a_day(clock: Clock) -> None:
    sessions, work, _ = beside(clock, a=6, quiet=0)
    reviewed: list[str] = []

    async def review(session: str) -> None:
        assert not sessions.acquire_lease(session, "another", clock().timestamp())
        reviewed.append(session)
        if len(reviewed) == 3:
            raise RuntimeError("out of order")

    async with look_after(sessions, work, review=review) as scheduler:
        await settled(scheduler)
        assert (work.done, reviewed) == ({"a": 1}, []), "somebody may be writing"
        clock.wait(POLICY.idle_seconds)
        await settled(scheduler)
        assert sorted(reviewed) == ["a", "quiet"]
        clock.wait(POLICY.review_seconds)
        assert await settled(scheduler) == 0, "nothing was said since"
        sessions.say("a", 6)
        await settled(scheduler)
        clock.wait(POLICY.idle_seconds)
        await settled(scheduler)
        clock.wait(POLICY.tick_seconds)
        await settled(scheduler)
        assert await settled(scheduler) == 0
    assert reviewed[2:] == ["a", "a"], "one that failed is tried again"
    assert work.done == {"a": 2}
    assert list(scheduler.failures) == [("a", "RuntimeError: out of order")]


async def test_it_ticks_by_itself(clock: Clock) -> None:
    fast = POLICY.model_copy(update={"tick_seconds": 0.001})
    sessions, work, scheduler = beside(clock, fast, a=6)
    async with scheduler:
        for rounds in (1, 2, 3):
            while work.done["a"] < rounds:
                await asyncio.sleep(0.001)
            sessions.say("a", 6)


async def test_the_sixth_round_triggers_at_once(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=0)
    async with scheduler:
        for rounds in range(1, 8):
            sessions.say("a")
            scheduler.notify("a")
            await asyncio.sleep(0)
            await scheduler.wait_idle()
            assert work.done["a"] == (rounds >= 6)


async def test_any_thread_may_notify(clock: Clock) -> None:
    _, work, scheduler = beside(clock, a=0, b=0)
    async with scheduler:
        await settled(scheduler)
        work.sessions.say("a", 6)
        thread = threading.Thread(target=scheduler.notify, args=("a",))
        thread.start()
        await asyncio.to_thread(thread.join)
        await asyncio.wait_for(work.begun.wait(), 10)
        await scheduler.wait_idle()
    assert work.done == {"a": 1}
    scheduler.notify("a")  # it has stopped: nothing happens


async def test_a_trigger_is_not_doubled_while_processing(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6)
    work.gate = asyncio.Event()
    async with scheduler:
        await work.begun.wait()
        for _ in range(5):
            scheduler.notify("a")
            await scheduler.tick()
        assert work.now == 1
        sessions.say("a", 20)
        work.gate.set()
        await scheduler.wait_idle()
    assert work.most == 1
    assert work.done["a"] == 1


async def test_rounds_said_meanwhile_are_seen_to_right_after(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6)

    async def reflect(session: str) -> str:
        said = await work(session)
        if work.done[session] == 1:
            sessions.say(session, 6)
            scheduler.notify(session)
        return said

    scheduler = look_after(sessions, reflect)
    async with scheduler:
        await asyncio.sleep(0)
        while work.done["a"] < 2:
            await asyncio.sleep(0.001)
    assert work.done["a"] == 2


async def test_two_schedulers_on_one_store_do_not_double(clock: Clock) -> None:
    names = [f"s{n}" for n in range(20)]
    sessions = Memory(InMemoryStore(), clock, **dict.fromkeys(names, 6))
    work = Work(sessions)
    both = [look_after(sessions, work) for _ in range(2)]
    async with both[0], both[1]:
        await asyncio.gather(*(s.tick() for s in both))
        await asyncio.gather(*(s.wait_idle() for s in both))
        await asyncio.gather(*(settled(s) for s in both))
    assert work.done == dict.fromkeys(names, 1)


async def test_a_restart_goes_on_from_what_is_stored(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=5)
    async with scheduler:
        await settled(scheduler)
    assert not work.done
    sessions.say("a")
    async with look_after(sessions, work) as again:
        await settled(again)
    assert work.done == {"a": 1}


async def test_a_mark_left_by_a_crash_blocks_for_its_time_only(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6)
    assert sessions.acquire_lease("a", "crashed", clock().timestamp())
    async with scheduler:
        await settled(scheduler)
        assert not work.done
        clock.wait(POLICY.lease_seconds)
        await settled(scheduler)
    assert work.done == {"a": 1}


async def test_a_failure_is_reported_retried_later_and_stops_nobody(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, bad=6, good=6, torn=6)
    work.failing, sessions.broken = {"bad"}, {"torn"}
    async with scheduler:
        await settled(scheduler)
        assert work.done == {"good": 1}
        assert dict(scheduler.failures) == {
            "bad": "RuntimeError: out of order",
            "torn": "OSError: cannot be read",
        }
        work.failing, sessions.broken = set(), set()
        await settled(scheduler)
        assert work.done == {"good": 1, "torn": 1}, "bad waits for the next tick"
        clock.wait(POLICY.tick_seconds)
        await settled(scheduler)
        assert work.done == {"good": 1, "torn": 1, "bad": 1}
    assert sessions.found["bad"].progress.failures == 0


async def test_one_that_gets_nowhere_is_left_until_the_next_tick(clock: Clock) -> None:
    sessions, read = beside(clock, a=6)[0], list[str]()

    async def reflect(session: str) -> None:
        read.append(session)
        assert len(read) < 20

    async with look_after(sessions, reflect) as scheduler:
        await settled(scheduler)
        once = len(read)
        await settled(scheduler)
    # The scheduler's own first tick may come to either of the two.
    assert 1 <= once < len(read) <= 8


async def test_a_storage_that_is_away_is_tried_again(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6)
    sessions.broken = {""}
    async with scheduler:
        assert await settled(scheduler) == 0
        sessions.broken = set()
        await settled(scheduler)
    assert work.done == {"a": 1}
    assert scheduler.failures[0] == ("", "OSError: no storage")


async def test_a_reflection_may_not_outlast_its_lease(clock: Clock) -> None:
    short = POLICY.model_copy(update={"lease_seconds": 0.05})
    _, work, scheduler = beside(clock, short, a=6)
    work.gate = asyncio.Event()
    async with scheduler:
        await asyncio.sleep(0)
        while not scheduler.failures:
            await asyncio.sleep(0.005)
    ((session, why),) = scheduler.failures
    assert session == "a"
    assert why.startswith("TimeoutError")


async def test_so_many_at_once_and_no_more(clock: Clock) -> None:
    names = [f"s{n}" for n in range(12)]
    few = POLICY.model_copy(update={"at_once": 3})
    _, work, scheduler = beside(clock, few, **dict.fromkeys(names, 6))
    async with scheduler:
        await settled(scheduler)
    assert work.done == dict.fromkeys(names, 1)
    assert 1 <= work.most <= 3


async def test_stopping_waits_for_what_has_begun(clock: Clock) -> None:
    few = POLICY.model_copy(update={"at_once": 1})
    _, work, scheduler = beside(clock, few, a=6, b=6)
    work.gate = asyncio.Event()
    await scheduler.start()
    await scheduler.start()
    await work.begun.wait()
    stopping = asyncio.create_task(scheduler.stop())
    await asyncio.sleep(0.01)
    assert not stopping.done()
    work.gate.set()
    await stopping
    assert sum(work.done.values()) == 1, "what had not begun is left for the next start"
    await scheduler.stop()
    assert _others() == set()


async def test_stopping_without_waiting_cancels_and_gives_the_lease_back(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6)
    work.gate = asyncio.Event()
    await scheduler.start()
    await work.begun.wait()
    await scheduler.stop(wait=False)
    assert not work.done
    assert sessions.leases.leases("a", clock().timestamp()) == {}
    assert _others() == set()


async def test_an_error_in_the_body_stops_it_too(clock: Clock) -> None:
    _, work, scheduler = beside(clock, a=6)
    work.gate = asyncio.Event()

    async def body() -> None:
        async with scheduler:
            await work.begun.wait()
            raise LookupError

    with pytest.raises(LookupError):
        await body()
    assert _others() == set()


async def test_a_clock_that_is_set_back_does_no_harm(clock: Clock) -> None:
    sessions, work, scheduler = beside(clock, a=6, b=1)
    async with scheduler:
        clock.wait(-86_400)
        await settled(scheduler)
        assert work.done["a"] == 1
        sessions.say("a", 6)
        clock.wait(-86_400)
        await settled(scheduler)
        assert work.done["a"] == 2
        await settled(scheduler)
    assert work.most <= 2
    assert work.done["a"] == 2


def _others() -> set[asyncio.Task[object]]:
    return {t for t in asyncio.all_tasks() if t is not asyncio.current_task()}


async def nothing(_: str) -> None:
    return None


def test_what_it_takes_is_any_coroutine_function() -> None:
    taken: Callable[[str], Awaitable[object]] = nothing
    assert look_after(Memory(InMemoryStore(), Clock()), taken).failures.maxlen == 200
