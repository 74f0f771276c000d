"""An import of 50,000 messages in 2,000 conversations: memory, a kill on the way, nothing twice.

Writes a made-up export of ChatGPT's in numbered parts, the newest first, imports it into one
session by the command, ends that by SIGKILL on the way, begins it again, and looks at the session.

    python benchmarks/imports.py FOLDER [--conversations 2000] [--messages 25] [--kill 0.5]

Targets: every message once, in the order of time; a topic for each conversation, under its title;
memory that does not grow with the export. CPU and peak memory are those of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PARTS = 20
"""Files of the export."""
SESSION = "all"
START, HOURS = 1_600_000_000, 11
"""The first conversation begins then, and each next one so many hours later."""
WORDS = (
    "rent boiler kitchen index query garden tomato train ticket hotel visa budget recipe lentils"
    " guitar chord marathon shin python socket tax letter landlord bank loan fridge oven camera"
    " lens cat vet food worktop drawer bicycle brake saddle novel chapter poem harbour ferry"
).split()


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of a command took."""

    code: int
    wall: float
    cpu: float
    peak: float
    """Megabytes of memory at most."""


def write_export(folder: Path, conversations: int, messages: int) -> list[str]:
    """Write the export; returns the titles, oldest first."""
    folder.mkdir(parents=True)
    made = random.Random(46)
    chats = [make_chat(made, number, messages) for number in range(conversations)]
    size = -(-conversations // PARTS)
    for part in range(PARTS):
        newest = chats[::-1][part * size : (part + 1) * size]
        (folder / f"conversations-{part:03}.json").write_text(json.dumps(newest), "utf-8")
    return [chat["title"] for chat in chats]


def make_chat(made: random.Random, number: int, messages: int) -> dict[str, Any]:
    """A conversation about two or three things, with a branch that was answered again."""
    about = made.sample(WORDS, 4)
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    before = "root"
    for place in range(messages):
        role = "assistant" if place % 2 else "user"
        time = START + number * HOURS * 3600 + place * 60
        for again in range(2 if place == 3 else 1):
            id_ = f"c{number}-{place}" + ("-old" if place == 3 and not again else "")
            text = say(made, about, 40 if place % 2 else 14)
            content = {"content_type": "text", "parts": [text]}
            message = {"id": id_, "author": {"role": role}, "create_time": time + again}
            message |= {"content": content, "recipient": "all", "metadata": {}}
            nodes[id_] = {"id": id_, "parent": before, "message": message}
        before = id_
    title = f"{about[0].capitalize()} and {about[1]} {number + 1}"
    return {"id": f"c{number}", "title": title, "mapping": nodes, "current_node": before}


def say(made: random.Random, about: list[str], words: int) -> str:
    """A text in which the things that it is about are named again and again."""
    return (
        " ".join(made.choice(about if made.random() < 0.3 else WORDS) for _ in range(words)) + "."
    )


def run_import(folder: Path, export: Path, *, end_at: int | None = None) -> Ran:
    """Import; with `end_at`, the process is killed once the session has so many messages."""
    program = Path(sys.executable).with_name("topicloom")
    given = ["--folder", str(folder), "import", str(export), "--session", SESSION, "--json"]
    command = [str(program), *given]
    began, transcript = time.perf_counter(), folder / SESSION / "transcript.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while end_at is not None and count_lines(transcript) < end_at and process.poll() is None:
            time.sleep(0.5)
        if end_at is not None:
            process.send_signal(signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ran(process.returncode, time.perf_counter() - began, *measure(used))


def measure(used: resource.struct_rusage) -> tuple[float, float]:
    """Seconds of CPU, and megabytes of memory at most."""
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def count_lines(path: Path) -> int:
    """The lines of a file; 0 if there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def read_rows(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints as JSON lines."""
    program = Path(sys.executable).with_name("topicloom")
    command = [str(program), "--folder", str(folder), *arguments]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.split("\n") if line]


def check(folder: Path, titles: list[str], messages: int) -> dict[str, bool]:
    """What has to hold of the session."""
    rows = read_rows(folder, "transcript", SESSION, "--json")
    topics = read_rows(folder, "topics", SESSION, "--json")
    sources = [row["source"] for row in rows]
    expected = [f"c{n}-{place}" for n in range(len(titles)) for place in range(messages)]
    return {
        "every message once, in the order of time": sources == expected,
        "a topic for each conversation, under its title": [t["name"] for t in topics] == titles,
        "every message in its topic": all(t["count"] == messages for t in topics),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="taken for the export and the session")
    parser.add_argument("--conversations", type=int, default=2_000)
    parser.add_argument("--messages", type=int, default=25, help="of a conversation")
    parser.add_argument("--kill", type=float, default=0.5, help="the share after which it is ended")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    titles = write_export(given.folder / "export", given.conversations, given.messages)
    count, sessions = given.conversations * given.messages, given.folder / "sessions"
    table = Table("run", "exit", "messages in the session", "seconds", "CPU s", "peak MB")
    for name, end_at in (("killed", int(count * given.kill)), ("again", None), ("once more", None)):
        ran = run_import(sessions, given.folder / "export", end_at=end_at)
        kept = count_lines(sessions / SESSION / "transcript.jsonl")
        figures = (f"{value:,.0f}" for value in (kept, ran.wall, ran.cpu, ran.peak))
        table.add_row(name, str(ran.code), *figures)
    console = Console()
    console.print(table)
    for what, holds in check(sessions, titles, given.messages).items():
        console.print(f"{'yes' if holds else 'NO'}: {what}")


if __name__ == "__main__":
    main()
