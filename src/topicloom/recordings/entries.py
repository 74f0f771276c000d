"""The entries of a file of JSON, of JSON lines or of an archive; of a damaged one, those whole."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import read_recording

_MEMBER = re.compile(r"(?:.*/)?conversations[\w-]*\.json")


def load_entries(path: Path) -> list[Any]:
    """The entries of a JSON file, a file of JSON lines, or such files in an archive.

    Where one is damaged stands a `NotAConversationError` that says where that is.

    Raises:
        NotAConversationError: It cannot be read, or nothing of it is JSON.
    """
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))
                texts = [archive.read(name).decode("utf-8-sig") for name in names]
        except (OSError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise NotAConversationError(
                f"{path} cannot be read: {error}. Export it again"
            ) from error
        if not texts:
            raise NotAConversationError(f"{path} holds no conversations.json")
    else:
        texts = [read_recording(path)]
    return [entry for text in texts for entry in _parse(path, text)]


def _parse(path: Path, text: str) -> list[Any]:
    """The entries of a text; where one is damaged stands an error that says so."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        found = max(_parse_lines(text), _parse_list(text), key=_count_whole)
        if not _count_whole(found):
            raise NotAConversationError(f"{path} is not JSON: {error}") from error
        return found
    return value if isinstance(value, list) else [value]


def _parse_lines(text: str) -> list[Any]:
    """What stands on each line; that may be a list with an entry on each."""
    found = list[Any]()
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip().rstrip(",")
        if entry not in ("", "[", "]"):
            try:
                found.append(json.loads(entry))
            except (ValueError, RecursionError) as error:
                found.append(NotAConversationError(f"line {number} is no JSON: {error}"))
    return found


def _parse_list(text: str) -> list[Any]:
    """The entries of a list that is damaged, up to there."""
    found, at = list[Any](), text.find("[") + 1
    if text[:at].strip() != "[":
        return []
    try:
        while True:
            at += len(text) - at - len(text[at:].lstrip(" \t\r\n,"))
            if text[at : at + 1] == "]":
                return []  # it ends: what stands behind it is no part of it
            value, at = json.JSONDecoder().raw_decode(text, at)
            found.append(value)
    except (ValueError, RecursionError):
        line = text.count("\n", 0, at) + 1
        where = f"line {line}, character {at - text.rfind(chr(10), 0, at)}"
        return [*found, NotAConversationError(f"{where}, is no JSON, and what follows is not read")]


def _count_whole(entries: Sequence[Any]) -> int:
    return sum(isinstance(entry, list | dict) for entry in entries)
