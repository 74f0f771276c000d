"""Many at once: threads, tasks, processes, looking back beside turns, and turns that are cancelled.

Whoever is told that a turn was taken finds what was said in the newest state, or was refused.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.errors import NodeCancelledError
from sessions import open_graph, thread

from faults.campaign import Case, Outcome
from faults.checker import Found, check
from faults.killing import Fuse, count_steps, run_child, start_child, wait_for
from faults.operations import operations
from faults.raw import read_files
from faults.stages import FilesStage, Opened, PostgresStage, Stage, postgres_server
from faults.talk import CONFIG, ROUNDS, expected, make_graph, say, talk, talking, told
from topicloom import NoNewMessageError, TopicLoomError
from topicloom.hosting import Graph
from topicloom.testing import ScriptedResponder, fake_roles

CROWDS = ("threads", "tasks", "two", "beside", "cancel", "setup")
"""Kinds of crowds."""


@contextmanager
def crowd_cases(
    kinds: Sequence[str], sessions: int, at_once: int, only: frozenset[str]
) -> Iterator[list[Case]]:
    """Cases of so many at once on so many sessions.

    Args:
        kinds: `files` or `postgres`, or both: where two processes write to one session.
        sessions: How many sessions threads and tasks talk in.
        at_once: How many threads and tasks there are.
        only: Some of `CROWDS`.
    """
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        files = FilesStage(folder / "base")
        stages: list[Stage] = [files]
        if "postgres" in kinds:
            server = held.enter_context(postgres_server())
            stages.append(PostgresStage(server, "postgres", folder).empty("base"))
        for stage in stages:
            count_steps(partial(talk, stage), stage.folder, folder / "errors")
        cases = [
            Case("crowd/threads/1", partial(_threads, folder / "threads", sessions, at_once)),
            Case("crowd/tasks/1", partial(_tasks, folder / "tasks", sessions, at_once)),
            *(
                Case(f"crowd/two-{s.kind}/{n}", partial(_two, stage))
                for s in stages
                for n in range(8)
            ),
            *(Case(f"crowd/beside/{n}", partial(_beside, files)) for n in range(4)),
            *(Case(f"crowd/cancel/{k}", partial(_cancel, files, k)) for k in range(1, 60)),
        ]
        if "setup" in only:
            steps = count_steps(partial(_set_up, files.empty("nothing")), folder, folder / "errors")
            cases += [
                Case(f"crowd/setup/{n}", partial(_complete, files, n)) for n in range(1, steps + 1)
            ]
        yield [case for case in cases if case.group.split("/")[1].partition("-")[0] in only]


def _shared(folder: Path, saver: Any) -> Graph:
    folder.mkdir()
    roles = fake_roles(ScriptedResponder(otherwise=lambda request: f"Yes: {request.query}"))
    return open_graph(folder, roles, checkpointer=saver)


def _said(session: int, number: int) -> str:
    return f"茶 {session}: SECRET-{session}- number {number}, " + "many words " * 20


def _jobs(sessions: int, at_once: int) -> list[tuple[int, int]]:
    """Turns, as many as are taken at once and four of a session, in any order."""
    jobs = [(n % sessions, n // sessions) for n in range(max(at_once, 4 * sessions))]
    random.Random(0).shuffle(jobs)
    return jobs


def _threads(folder: Path, sessions: int, at_once: int) -> Outcome:
    with SqliteSaver.from_conn_string(str(folder.with_suffix(".sqlite"))) as saver:
        graph = _shared(folder, saver)

        def turn(job: tuple[int, int]) -> tuple[int, str] | None:
            session, number = job
            given: Any = {"messages": [HumanMessage(_said(*job), id=f"{session}-{number}")]}
            return _accepted(job, lambda: graph.invoke(given, thread(f"s{session}")))

        with ThreadPoolExecutor(at_once) as pool:
            taken = list(pool.map(turn, _jobs(sessions, at_once)))
    return _seen(folder, taken, sessions)


def _tasks(folder: Path, sessions: int, at_once: int) -> Outcome:
    async def all_at_once() -> list[tuple[int, str] | None]:
        path = str(folder.with_suffix(".sqlite"))
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph, free = _shared(folder, saver), asyncio.Semaphore(at_once)

            async def turn(job: tuple[int, int]) -> tuple[int, str] | None:
                session, number = job
                given: Any = {"messages": [HumanMessage(_said(*job), id=f"{session}-{number}")]}
                async with free:
                    try:
                        await graph.ainvoke(given, thread(f"s{session}"))
                    except TopicLoomError:
                        return None
                return session, _said(*job)

            return await asyncio.gather(*map(turn, _jobs(sessions, at_once)))

    return _seen(folder, asyncio.run(all_at_once()), sessions)


def _accepted(job: tuple[int, int], turn: Callable[[], object]) -> tuple[int, str] | None:
    try:
        turn()
    except TopicLoomError:
        return None
    return job[0], _said(*job)


def _seen(folder: Path, taken: Sequence[tuple[int, str] | None], sessions: int) -> Outcome:
    """Look for what was accepted, in its own session and no other."""
    problems: list[str] = []
    (folder.with_suffix(".sqlite")).rename(folder / "checkpoints.sqlite")
    for session in range(sessions):
        found = check(read_files(folder, f"s{session}"))
        problems += [f"s{session}: {problem}" for problem in found.problems]
        accepted = Counter(job[1] for job in taken if job is not None and job[0] == session)
        hidden = accepted - Counter(found.users)
        foreign = [text for text in found.users if f"SECRET-{session}-" not in text]
        problems += [f"s{session}: {sum(hidden.values())} accepted, not visible"] if hidden else []
        problems += [f"s{session}: {len(foreign)} from other sessions"] if foreign else []
    refused = sum(job is None for job in taken)
    return Outcome(problems, Counter(turns=len(taken), refused=refused))


def _two(base: Stage) -> Outcome:
    """Two processes that talk in one session at once, six rounds each."""
    stage = base.copy("crowded")
    logs = [base.folder.with_name(f"told-{process}") for process in range(2)]
    found, problems = _at_once(
        stage, {log.name: partial(_talk_on, stage, n, log) for n, log in enumerate(logs)}
    )
    lines = [json.loads(line) for log in logs for line in log.read_text("utf-8").splitlines()]
    hidden = Counter(line["said"] for line in lines if "said" in line) - Counter(found.users)
    problems += [f"accepted and not visible: {sorted(hidden)}"] if hidden else []
    problems += [line["error"] for line in lines if "error" in line]
    refused = sum("refused" in line for line in lines)
    return Outcome(problems, Counter(turns=len(lines), refused=refused))


def _talk_on(stage: Stage, process: int, log: Path) -> None:
    """Talk, and write down what came of it."""
    with log.open("w", encoding="utf-8") as file, stage.open() as opened:
        graph = make_graph(stage, opened)
        for number in range(ROUNDS + 6 * process, ROUNDS + 6 * process + 6):
            file.write(json.dumps(_tell(graph, number)) + "\n")


def _at_once(stage: Stage, works: Mapping[str, Callable[[], None]]) -> tuple[Found, list[str]]:
    """Do things in processes of their own at once; what is found then, and what is wrong."""
    errors = {name: stage.folder.with_name(f"errors-{name}") for name in works}
    children = {name: start_child(work, errors[name]) for name, work in works.items()}
    ends = {name: wait_for(child) for name, child in children.items()}
    found = check(stage.read())
    failed = [f"{n} fails: {errors[n].read_text()[-800:]}" for n, end in ends.items() if end]
    return found, [*found.problems, *failed]


def _tell(graph: Graph, number: int) -> dict[str, str]:
    given: Any = {"messages": [HumanMessage(told(number), id=f"round-{number}")]}
    try:
        graph.invoke(given, CONFIG)
    except TopicLoomError as error:
        return {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - what is raised is what is looked for
        return {"error": f"{type(error).__name__}: {error!s:.300}"}
    return {"said": told(number)}


def _beside(base: FilesStage) -> Outcome:
    """Reviews and reflections in processes of their own, while a session takes its turns."""
    stage = base.copy("beside")
    by_name = {operation.name: operation for operation in operations("files")}

    def look_back(name: str) -> None:
        for _ in range(2):
            # Another may hold the session.
            with suppress(TopicLoomError):
                by_name[name].act(stage, True)

    names = ("review", "reflection")
    works = {name: partial(look_back, name) for name in names}
    found, problems = _at_once(stage, {"turns": partial(_go_on, stage), **works})
    hidden = [text for text in map(told, range(ROUNDS + 4)) if text not in found.users]
    problems += [f"accepted, not visible: {text[:20]}" for text in hidden]
    return Outcome(problems, Counter(turns=4))


def _go_on(stage: Stage) -> None:
    with talking(stage) as (graph, _):
        for number in range(ROUNDS, ROUNDS + 4):
            say(graph, number, patient=True)


def _set_up(stage: Stage) -> None:
    """Write to the store of a new place, and read."""
    with stage.open() as opened:
        opened.store.put(("a",), "b", {"c": 1})
        assert [item.value for item in opened.store.search(("a",))] == [{"c": 1}]


def _complete(base: FilesStage, step: int) -> Outcome:
    """Kill a set-up before a step; two more open the same at once, as after a restart."""
    stage = base.empty("none").copy("half")
    end = run_child(partial(_set_up, stage), base.root.with_name("errors"), Fuse(stage.root, step))
    _, problems = _at_once(stage, dict.fromkeys("ab", partial(_set_up, stage)))
    return Outcome(problems, Counter(kills=int(end == -9)))


def _cancel(base: FilesStage, at: int) -> Outcome:
    """Cancel a turn where it waits for the `at`th time, and say the same again."""
    stage = base.copy("cancelled")
    cancelled = asyncio.run(_cancelled(stage, at))
    found = check(stage.read())
    problems = list(found.problems)
    if list(found.messages) != expected(ROUNDS + 1):
        problems.append(f"{len(found.messages)} messages, not those that were said")
    return Outcome(problems, Counter(cancelled=int(cancelled)))


async def _cancelled(stage: FilesStage, at: int) -> bool:
    path = str(stage.root / "checkpoints.sqlite")
    given: Any = {"messages": [HumanMessage(told(ROUNDS), id=f"round-{ROUNDS}")]}
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        with stage.context.open_store() as store:
            opened = Opened(saver, store, stage.context.storage)
            graph = make_graph(stage, opened)
            turn = partial(graph.ainvoke, given, CONFIG, durability="sync")
            try:
                await asyncio.create_task(cancel_at(turn(), at))
            except (asyncio.CancelledError, NodeCancelledError):
                with suppress(NoNewMessageError):  # it was answered before it was cancelled
                    await turn()
                return True
    return False


async def cancel_at(work: Coroutine[Any, Any, Any], at: int) -> Any:
    """Await something, and cancel the task where it waits for the `at`th time."""
    return await _Counted(work, at)


class _Counted:
    def __init__(self, work: Coroutine[Any, Any, Any], at: int) -> None:
        self._work, self._at = work, at

    def __await__(self) -> Generator[Any, Any, Any]:
        send: Callable[[Any], Any] = self._work.send
        value: Any = None
        while True:
            try:
                waiting = send(value)
            except StopIteration as end:
                return end.value
            self._at -= 1
            task = asyncio.current_task()
            if self._at == 0 and task is not None:
                task.cancel()
            try:
                value, send = (yield waiting), self._work.send
            except BaseException as error:  # noqa: BLE001 - what came of it is the work's to see
                value, send = error, self._work.throw
