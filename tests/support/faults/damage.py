"""Damages each file of a session in turn: what follows is an answer, or an error that says so."""

from __future__ import annotations

import json
import struct
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from faults.campaign import Case, Outcome
from faults.checker import Said
from faults.operations import operations, run_command
from faults.stages import NAME, FilesStage
from faults.talk import CONFIG, ROUNDS, expected, say, talk, talking
from topicloom import TopicLoomError, TopicLoomWarning, open_session
from topicloom.hosting import REMOVED

Harm = Callable[[bytes], bytes | None]
"""The content of a file after it was damaged; None for no file."""


@contextmanager
def damage_cases(places: int) -> Iterator[list[Case]]:
    """A case for every way to damage every file, with flips and cuts at so many places in each."""
    with tempfile.TemporaryDirectory() as folder:
        base = make_old_session(FilesStage(Path(folder) / "base"))
        yield [
            Case(f"damage/{file}/{name}", partial(_damage, base, file, harm))
            for file in _files(base)
            for name, harm in _harms(file, places)
        ]


def make_old_session(stage: FilesStage) -> FilesStage:
    """A session with everything that one can have: topics, one of them archived, and facts."""
    talk(stage)
    by_name = {operation.name: operation for operation in operations("files")}
    for name in ("review", "reflection"):
        by_name[name].act(stage, True)
    return stage


def _files(stage: FilesStage) -> list[str]:
    files = (path.relative_to(stage.root) for path in stage.root.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if not path.name.endswith((".lock", ".held")))


def _harms(file: str, places: int) -> Iterator[tuple[str, Harm]]:
    yield "delete", lambda data: None
    yield "empty", lambda data: b""
    yield "noise", lambda data: bytes(17 * n % 256 for n in range(len(data)))
    yield "double", lambda data: data + data
    for place in range(places):
        share = (place + 0.5) / places
        yield f"flip-{place}", partial(_flip, share)
        yield f"cut-{place}", partial(_cut, share)
    if file.endswith((".jsonl", ".json")):
        yield "crlf", lambda data: data.replace(b"\n", b"\r\n")
        yield "mark", lambda data: b"\xef\xbb\xbf" + data
        yield "list", lambda data: b"[1]\n"
    if file.endswith(".jsonl"):
        yield "reversed", lambda data: b"".join(reversed(data.splitlines(keepends=True)))
        yield "line", lambda data: data.replace(b"\n", b"\n\xff\xfe no entry\n", 1)
    if file.endswith("session.json"):
        for version in (0, 99, "two", None):
            yield f"format-{version}", partial(_set_format, version)
        yield "name", lambda data: data.replace(b'"s"', b'"other"')
    if file.endswith(".bin"):
        yield "nan", lambda data: data[:32] + b"\xff" * (len(data) - 32)
        for dimension in (0, 1, 64, 2**31 - 1):
            yield f"dimension-{dimension}", partial(_set_dimension, dimension)


def _flip(share: float, data: bytes) -> bytes:
    changed, place = bytearray(data), int(len(data) * share)
    changed[place : place + 1] = bytes(byte ^ 1 for byte in changed[place : place + 1])
    return bytes(changed)


def _cut(share: float, data: bytes) -> bytes:
    return data[: int(len(data) * share)]


def _set_format(version: object, data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "format": version}).encode()


def _set_dimension(dimension: int, data: bytes) -> bytes:
    return data[:16] + struct.pack("<I", dimension) + data[20:]


def _damage(base: FilesStage, file: str, harm: Harm) -> Outcome:
    """Damage a file, then go on with the session as a new process does."""
    stage = base.copy("damaged")
    path = stage.root / file
    data = harm(path.read_bytes())
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    wrong: list[str] = []
    refused = answered = 0
    try:
        with warnings.catch_warnings(), talking(stage) as (graph, _):
            # Where the checkpoints are gone, the session begins anew, and says so.
            warnings.simplefilter("ignore", TopicLoomWarning)
            say(graph, ROUNDS, patient=True)
            answered = 1
            session, store = open_session(graph, CONFIG)
            said = [(m.role, m.text) for m in store.messages(session)]
            wrong = _foreign(said)
    except TopicLoomError as error:
        refused = 1 - answered
        wrong = [] if str(error).strip() else ["an error without a word"]
    repaired = 0
    if refused and file.startswith(f"{NAME}/") and Path(file).name not in _NEEDED:
        run_command(stage, "repair", NAME)
        with talking(stage) as (graph, _):
            say(graph, ROUNDS, patient=True)
        repaired = 1
    return Outcome(wrong, Counter(answered=answered, refused=refused, repaired=repaired))


_NEEDED = ("transcript.jsonl", "session.json")
"""Files that nothing else tells: what is damaged in them comes from a backup."""


def _foreign(said: Sequence[Said]) -> list[str]:
    """What is served that was never said. A session that is gone begins anew."""
    known = {*expected(ROUNDS + 1), ("user", REMOVED)}
    return [f"served {message!r:.200}" for message in said if message not in known]
