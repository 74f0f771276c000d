"""The session that `topicloom ui` opens without a name: the packaged recording, replayed.

Two runs give the same messages, topics, scores and quotes. Ids of checkpoints and seconds differ;
on another kind of processor, vectors and scores differ in their last digits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rich.console import Console

from topicloom import Fact, FactChanges, FileStorage, Memory, ReflectionStore, Settings
from topicloom_app.cli.context import make_context
from topicloom_app.cli.replay import RECALL, WINDOW
from topicloom_app.cli.sample import replay_sample
from topicloom_app.recordings.replay import find_sample, load_first_conversation

PACKED = find_sample().with_suffix(".zip")
ALIKE = 0.95
"""Share of what is remembered that has to be the same for the session to be up to date."""
_DAY = datetime(2026, 11, 26, 12, tzinfo=UTC)
"""When it is replayed: words such as "yesterday" and the age of topics depend on it."""
Facts = set[tuple[Hashable, ...]]
KNOWN = {
    53: ("Her mother has gout: no seafood, offal, rich broth or beer",),
    3: ("Her husband Tom is 1.88 m tall, she is 1.64",),
    9: ("She runs the half marathon around the lake on 31 May",),
    69: ("Tom's parents live in Galway",),
    179: ("Her daughter Nell turned nine on 18 April", "Frieda is allergic to nuts"),
    253: ("Nell's speech contest is on Saturday 23 May",),
    331: ("The kitchen cost 15,862 euros in the end",),
    335: ("Maeve and Declan visit from 7 to 16 August",),
}
"""What a model found of the user, by the message that says so: recorded, like the replies."""


def is_current() -> bool:
    """True if a replay gives the session that ships. Takes half a minute."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        packed, made = Path(one), Path(other)
        with ZipFile(PACKED) as archive:
            archive.extractall(packed)
        _replay(made)
        return _list_keys(packed) == _list_keys(made) and all(
            len(then & now) >= ALIKE * len(then | now)
            for then, now in zip(_list_facts(packed), _list_facts(made), strict=True)
        )


def write() -> None:
    """Replay the recording, and pack its session beside it."""
    with TemporaryDirectory() as made:
        _replay(Path(made))
        pack_folder(Path(made), PACKED)


def pack_folder(folder: Path, packed: Path) -> None:
    """Write the files of a folder into an archive, without locks and without times."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    with ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=9) as file:
        for name in names:
            if name.name != ".lock":
                entry = ZipInfo(name.as_posix())
                file.writestr(entry, (folder / name).read_bytes(), ZIP_DEFLATED, compresslevel=9)


def _replay(folder: Path) -> None:
    """Replay the packaged recording into an empty folder, with default settings and no model."""
    begun = time.monotonic()
    sample = find_sample()

    def read_clock() -> datetime:
        return _DAY + timedelta(seconds=time.monotonic() - begun)

    context = make_context(folder, Settings(window=WINDOW, recall_share=RECALL, fsync=False))
    conversation = load_first_conversation(sample, None)
    replay_sample(context, Console(stderr=True), sample.stem, conversation, read_clock)
    said = {n: conversation.messages[n - 1].time or "" for n in KNOWN}
    facts = (Fact(text, (f"m{n}",), said[n]) for n, texts in KNOWN.items() for text in texts)
    with context.open_store() as store:
        ReflectionStore(store).change_facts(sample.stem, FactChanges(tuple(facts)))


def _list_keys(folder: Path) -> dict[str, set[str]]:
    """The keys of the records of each log: the form that a session is stored in."""
    found = dict[str, set[str]]()
    for file in folder.rglob("*.jsonl"):
        keys = found.setdefault(file.parent.name + file.stem, set())
        for line in file.read_text("utf-8").splitlines():
            keys.update(json.loads(line))
    return found


def _list_facts(folder: Path) -> Iterator[Facts]:
    """What a session remembers: facts, messages by topic, quotes by turn, tokens by turn and
    section."""
    memory = Memory(FileStorage(folder), find_sample().stem)
    with make_context(folder, Settings()).open_store(reading=True) as store:
        yield {
            (f.text, f.messages) for f in ReflectionStore(store).facts(memory.session().id).values()
        }
    yield {(topic.name, said.id) for topic in memory.topics() for said in topic.messages()}
    receipts = memory.receipts()
    yield {(r.turn, q) for r in receipts for topic in r.quoted for q in topic.quotes}
    yield {(r.turn, name, tokens) for r in receipts for name, tokens in r.sections.items()}
