"""Files of data to measure on: a JSON object of one kind a line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import parse_record, read_recording

Record = TypeVar("Record", bound=BaseModel)


def read_records(path: Path, kind: type[Record], what: str, wanted: str) -> Iterator[Record]:
    """The records of a file, one at a time; `.xz` is unpacked.

    Args:
        path: The file.
        kind: What a line holds.
        what: Its name for messages, such as `segmented dialogue`.
        wanted: The form of a line.

    Raises:
        NotAConversationError: If the file cannot be read or a line holds something else; the
            message names file and line.
    """
    text = read_recording(path)
    if not text.strip():
        raise NotAConversationError(f"{path} is empty: it holds no {what.split()[-1]}")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            parse = partial(kind.model_validate_json, line)
            yield parse_record(parse, f"{path}, line {number}", what, wanted)
