"""The inspector on 10 million tokens: first paint, a topic, search, scrolling, the API.

Writes a made-up session of 60,000 messages in 400 topics straight into a folder, if it is not
there, serves it with `topicloom ui`, asks every endpoint of the API for places all over it, and
looks at it in the system's Chromium. Messages are searched with hashed words: an encoder would add
its own time to each search, and half an hour before the first.

    python benchmarks/inspector.py FOLDER [--messages 60000] [--times 60]

Targets, of CPU: first paint under 2 s, a topic under 0.5 s, a search under 1 s, the API under
200 ms at the 95th percentile; 95 % of the steps of scrolling under 50 ms. Milliseconds are of the
wall, whatever else the machine does; CPU is that of the server, and of the page's own thread.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright
from resources import bytes_in
from rich.console import Console
from rich.table import Table

from topicloom import (
    FileStorage,
    Receipt,
    Round,
    Session,
    SessionStore,
    Settings,
    StoredMessage,
    Topic,
    TopicNote,
    build_session_graph,
    count_budget_tokens,
    local_checkpointer,
)
from topicloom_lab.talk import said

NAME, TOPICS, ROUNDS, CHARACTERS = "long", 400, 10, 667
"""Rounds of a run about one topic; characters of a message."""
BEGIN = datetime(2023, 1, 1, 9, tzinfo=UTC)


def write_session(folder: Path, count: int) -> None:
    """Write the session, its receipts, and a checkpoint that points at it."""
    store = SessionStore(FileStorage(folder, fsync=False).open(NAME))
    session, topics, tokens = Session(id=NAME), dict[int, Topic](), 0
    for run in range(count // (2 * ROUNDS)):
        rounds = [Round(tuple(_say(run, n))) for n in range(ROUNDS)]
        spoken = [message for round_ in rounds for message in round_.messages]
        tokens += sum(count_budget_tokens(m.text) for m in spoken)
        number = 7 * run % TOPICS
        session = store.append(session, spoken)
        named = f"Matter {number + 1}"
        topic = topics.get(number) or Topic(id=f"t{number + 1}", name=named, brief=named)
        session, topics[number] = store.assign(session, topic, spoken)
        session = store.add_receipt(session, _receipt(run, spoken[-2], topic))
    update = {"tail": count + 1, "view": count + 1, "topics": TOPICS, "turn": session.count // 20}
    active = {f"t{n}": (0.5,) for n in range(1, 11)}
    session = store.save_topics(session, list(topics.values())).model_copy(
        update={**update, "active": active}
    )
    saver = local_checkpointer(folder)
    graph = build_session_graph(settings=Settings(folder=folder)).compile(checkpointer=saver)
    state = {"session": session.model_dump(mode="json"), "messages": []}
    graph.update_state({"configurable": {"thread_id": NAME}}, state, as_node="finalize")
    print(f"{count:,} messages, {tokens:,} tokens, {bytes_in(folder) / 1e6:.0f} MB")


def _say(run: int, number: int) -> Iterator[StoredMessage]:
    """A round: two messages, twenty a day."""
    seq = 2 * (run * ROUNDS + number) + 1
    at = (BEGIN + timedelta(days=run, minutes=number)).isoformat()
    for n, role in enumerate(("user", "assistant")):
        text = said(seq + n, CHARACTERS)
        yield StoredMessage.model_validate({"seq": seq + n, "role": role, "text": text, "time": at})


def _receipt(run: int, asked: StoredMessage, topic: Topic) -> Receipt:
    note = TopicNote(topic=topic.id, name=topic.name, score=0.9, quotes=(f"m{max(1, run)}",))
    return Receipt(
        turn=run + 1,
        user=asked.id,
        started=asked.time,
        seconds=1,
        scores={topic.id: 0.9},
        quoted=(note,),
        sections={"system": 500, "notes": 200, "tail": 900},
        window=32_000,
        view=asked.seq,
        noted=asked.seq,
    )


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """The address of the page, with the key in it; what tells the server's CPU, in seconds."""
    program = str(Path(sys.executable).with_name("topicloom"))
    command = [program, "--folder", str(folder), "ui", NAME]
    environment = {**os.environ, "TOPICLOOM_EMBEDDER": "hashing"}
    with subprocess.Popen(
        [*command, "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stdout is not None
        stat = Path(f"/proc/{server.pid}/stat")

        def spent() -> float:
            fields = stat.read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

        try:
            yield next(line.strip() for line in server.stdout if line.startswith("http")), spent
        finally:
            server.terminate()


def ask_api(address: str, spent: Callable[[], float], count: int, times: int) -> Table:
    """Ask every endpoint for places all over the session."""
    draw = random.Random(7)
    base, _, key = address.partition("/?key=")
    places: dict[str, Callable[[], str]] = {
        "session": lambda: "",
        "topics": lambda: "/topics",
        "days": lambda: "/days",
        "messages around one": lambda: f"/messages?around=m{draw.randint(1, count)}&limit=60",
        "a topic's messages": lambda: (
            f"/topics/t{draw.randint(1, min(TOPICS, count // 140))}?limit=100"
        ),
        "search": lambda: f"/search?text={said(draw.randint(1, count), 40)}",
        "why": lambda: f"/receipts/m{20 * draw.randint(1, count // 20) - 1}",
        "why not": lambda: f"/absences/{draw.randint(1, count // 20)}/m{draw.randint(1, count)}",
        "marks": lambda: "/marks",
        "moments": lambda: "/moments",
        "what if": lambda: f"/replay?base={draw.random():.2f}",
        "facts": lambda: "/facts",
        "changes": lambda: "/changes",
    }
    columns = ("API", "median ms", "95 % ms", "median CPU ms", "95 % CPU ms")
    table = Table(*columns, title=f"{times} requests each, behind a first one")
    with httpx.Client(base_url=base, timeout=600) as client:
        client.get(f"/?key={key}")
        for name, path in places.items():
            client.get(f"/api/session/{NAME}{path()}")
            taken, cpu = list[float](), list[float]()
            for _ in range(times):
                began, before = time.perf_counter(), spent()
                client.get(f"/api/session/{NAME}{path()}").raise_for_status()
                taken.append(1_000 * (time.perf_counter() - began))
                cpu.append(1_000 * (spent() - before))
            found = (f(part) for part in (taken, cpu) for f in (statistics.median, _high))
            table.add_row(name, *(f"{value:.0f}" for value in found))
    return table


def _high(values: list[float]) -> float:
    """Their 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def look(page: Page, address: str, spent: Callable[[], float]) -> Iterator[tuple[str, ...]]:
    """What a person does; milliseconds until it is there, and of CPU of the server and the page."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def drawn() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration")

    def take(name: str, act: Callable[[], object], there: str) -> tuple[str, ...]:
        clocks = (time.perf_counter, spent, drawn)
        began = [clock() for clock in clocks]
        act()
        page.locator(there).first.wait_for(timeout=600_000)
        return name, *(f"{1_000 * (c() - b):.0f}" for c, b in zip(clocks, began, strict=True))

    search = page.locator("[type=search]")
    yield take("first paint", lambda: page.goto(address), "[data-id]")
    page.locator("[data-topic]").first.wait_for(timeout=120_000)
    yield take("open a topic", lambda: page.locator("[data-topic]").nth(5).click(), ".line")
    yield take("search", lambda: search.fill("sourdough"), ".found mark")
    yield take("the rest of the index is made", lambda: None, ".found:not(:has(.quiet))")
    search.fill("")
    page.locator(".back").click()
    page.locator("[data-topic]").first.wait_for()
    yield take("open a topic then", lambda: page.locator("[data-topic]").nth(8).click(), ".line")
    yield take("search then", lambda: search.fill("flour"), ".found mark")
    page.locator("[data-id]").last.hover()
    steps = page.evaluate(SCROLL)
    for name, value in (
        ("median step of scrolling", statistics.median(steps)),
        ("95 % of the steps", _high(steps)),
        ("longest step", max(steps)),
    ):
        yield name, f"{value:.0f}", "", ""


SCROLL = """async () => {
  const view = document.querySelector(".messages"), steps = [];
  const frame = () => new Promise(requestAnimationFrame);
  for (let n = 0, last = await frame(); n < 400; n++) {
    view.scrollTop -= 120;
    const now = await frame();
    steps.push(now - last);
    last = now;
  }
  return steps;
}"""


def main() -> None:
    """Write, serve, ask and look."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the session is, or will be")
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--times", type=int, default=60, help="requests of each kind")
    given = parser.parse_args()
    if not (given.folder / NAME).exists():
        given.folder.mkdir(parents=True, exist_ok=True)
        write_session(given.folder, given.messages)
    console, chromium = Console(), shutil.which("chromium")
    with serve(given.folder) as (address, spent):
        if chromium:
            page_table = Table("page", "ms", "server's CPU ms", "page's CPU ms")
            with sync_playwright() as playwright:
                options: Any = {"executable_path": chromium, "args": ["--no-sandbox"]}
                page = playwright.chromium.launch(**options).new_page()
                for again in ("", ", again"):
                    for name, *taken in look(page, address, spent):
                        page_table.add_row(name + again, *taken)
            console.print(page_table)
        console.print(ask_api(address, spent, given.messages, given.times))


if __name__ == "__main__":
    main()
