"""Print the names that topics get without a model, as Markdown tables to read as a stranger.

    python lab/scripts/topic_names.py THREADS.jsonl[.xz] [--part N]
    topicloom topics SESSION --json | python lab/scripts/topic_names.py -

Of conversations with known threads, each thread is named as if a split had made exactly that topic;
`--part` names it in parts of N messages. Of a session, its topics are listed under their full
names, with the beginning of their briefs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from topicloom import BriefRequest, StoredMessage, Topic, default_embedder
from topicloom.lab import EmbeddedBriefWriter, detect_language
from topicloom_app.recordings.records import read_records
from topicloom_lab.threads import ThreadedConversation

_DIGEST = 2_000
"""Characters of what was said in a thread by which the others are told from it."""
_SHOWN = 80
"""Characters of a message that are shown."""


class Named(NamedTuple):
    """A topic as the table has it."""

    name: str
    messages: int
    about: str
    """The first thing that the user said, or what a brief begins with."""


def name_threads(conversation: ThreadedConversation, part: int | None) -> Iterator[Named]:
    """The threads of a conversation, or parts of them, with the names that they get."""
    writer = EmbeddedBriefWriter(default_embedder())
    threads: dict[str, list[StoredMessage]] = defaultdict(list)
    for seq, message in enumerate(conversation.messages, 1):
        by_assistant = (message.voice or "").lower() == "assistant"
        role = "assistant" if by_assistant else "user"
        if message.thread is not None:
            stored = StoredMessage(seq=seq, role=role, text=message.text, time="2026-01-01")
            threads[message.thread].append(stored)
    topics = [
        thread[start : start + size]
        for thread in threads.values()
        for size in [part or len(thread)]
        for start in range(0, len(thread), size)
    ]
    said = [[m.text for m in topic if m.role == "user"] or [topic[0].text] for topic in topics]
    names: dict[str, str] = {}
    for number, topic in enumerate(topics):
        rest = {f"-{n}": "\n".join(t)[:_DIGEST] for n, t in enumerate(said) if n != number}
        request = BriefRequest(
            session=conversation.id,
            topic=Topic(id=f"t{number}", name="", count=len(topic)),
            messages=topic,
            language=detect_language(said[number]),
            others={**rest, **names},
        )
        name = writer.call(request).value.name
        names[name] = ""
        yield Named(name, len(topic), said[number][0])


def read_topics(lines: Iterable[str]) -> Iterator[Named]:
    """The topics of a session, as `topicloom topics --json` prints them."""
    for row in map(json.loads, filter(str.strip, lines)):
        quoted = row["brief"].split("\n")
        yield Named(row["full_name"], row["count"], quoted[min(2, len(quoted) - 1)])


def format_table(rows: Iterable[Named]) -> str:
    """A Markdown table of topics."""
    lines = ["| name | messages | about |", "|---|---|---|"]
    for name, messages, about in rows:
        short = " ".join(about.split())[:_SHOWN].replace("|", "\\|")
        lines.append(f"| {name} | {messages} | {short} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables of a file, or of topics on standard input."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="conversations with threads, one JSON a line; - for topics")
    parser.add_argument("--part", type=int, help="messages of a part of a thread")
    arguments = parser.parse_args()
    if arguments.file == "-":
        print(format_table(read_topics(sys.stdin)))
        return
    wanted = '{"id", "messages": [{"id", "speaker", "text", "thread"}]}'
    path = Path(arguments.file)
    for found in read_records(path, ThreadedConversation, "threaded conversation", wanted):
        print(f"\n### {found.id}\n\n{format_table(name_threads(found, arguments.part))}")


if __name__ == "__main__":
    main()
