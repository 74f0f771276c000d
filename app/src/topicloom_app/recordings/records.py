"""Records of a file, one JSON a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from topicloom import NotAConversationError
from topicloom.hosting import FilledText
from topicloom_app.recordings.export_files import ExportFile

T = TypeVar("T")
Record = TypeVar("Record", bound=BaseModel)


def read_recording(path: Path) -> str:
    """The text of a file, unpacked if it is `.xz` or `.gz`; raises `NotAConversationError`."""
    with ExportFile(path).open() as file:
        return file.read()


def parse_record(parse: Callable[[], T], line: str, kind: str, wanted: str) -> T:
    """A record of a file; raises `NotAConversationError`, which says where and what is wanted."""
    try:
        return parse()
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "it"
        raise NotAConversationError(
            "{line} is no {thing}: {place}: {problem}. Wanted: {wanted}",
            line=line,
            thing=kind,
            place=place,
            problem=problem["msg"],
            wanted=wanted,
        ) from error


def read_lines(path: Path, text: str, what: str = "conversation") -> Iterator[tuple[str, str]]:
    """The lines of a file's text that hold anything, each with where it stands.

    Raises:
        NotAConversationError: There is none; it says what a line should hold.
    """
    if not text.strip():
        raise NotAConversationError(
            "{path} is empty: it holds no {thing}", path=path, thing=FilledText(what.split()[-1])
        )
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}, line {number}", line


def read_records(path: Path, kind: type[Record], what: str, wanted: str) -> Iterator[Record]:
    """The records of a file, one at a time; `.xz` and `.gz` are unpacked.

    Args:
        path: The file.
        kind: What a line holds.
        what: Its name for messages, such as `segmented dialogue`.
        wanted: The form of a line.

    Raises:
        NotAConversationError: If the file cannot be read or a line holds something else; the
            message names file and line.
    """
    for place, line in read_lines(path, read_recording(path), what):
        yield parse_record(partial(kind.model_validate_json, line), place, what, wanted)
