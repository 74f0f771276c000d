"""Conversations as other chats export them. The content of a file decides its format, not its name.

Few vendors document their format, so we read what exports have contained so far. What is not
understood is reported, and everything else is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from topicloom import NotAConversationError
from topicloom_app.recordings.export_files import ExportFile, find_files
from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.formats.activity_page import read_activity_page
from topicloom_app.recordings.formats.base import ExportFormat, Source
from topicloom_app.recordings.formats.known import FORMATS, find_format, holds_conversation
from topicloom_app.recordings.json_stream import Entry, read_entries
from topicloom_app.recordings.limits import UnpacksTooMuchError

_LOOKED_AT = 50
"""Entries after which a file is given up in which nobody recognizes one."""
_HEAD = 4_096
"""Characters at the beginning of a file by which it is told what kind of text it is."""
UNREAD_FILES = "files without a conversation that is known"
SIDE_FILES = "files of the export that hold no conversation"
_SIDE = re.compile(
    r"(user|user_settings|message_feedback|shared_conversations|model_comparisons|group_chats"
    r"|shopping|sora|export_manifest)\.json|chat\.html"  # of ChatGPT's
    r"|(users|projects|memories)\.json"  # of Claude's
    r"|archive_browser\.html"  # of Google's
    r"|file[-_][\w-]+"  # what was attached in ChatGPT, without an ending
)
"""Names of files that exports have beside their conversations."""


def read_exports(
    paths: Iterable[Path],
    *,
    branches: bool = False,
    zone: tzinfo | None = None,
    day_first: bool | None = None,
) -> Iterator[ExportedConversation]:
    """The conversations of exports, file by file; one may also only report what was not understood.

    Args:
        paths: Files, folders and archives.
        branches: True to read other branches than the one that was shown too.
        zone: Where the user lives; None for the zone of this machine.
        day_first: Whether the day comes before the month in dates such as 1/2/2026; None to find
            it out.

    Raises:
        NotAConversationError: A path does not exist, an archive cannot be read, or a packed file
            unpacks to too much.
    """
    for file in find_files(paths):
        yield from _read_file(file, Source(file.stem, branches, zone, day_first))


def _read_file(file: ExportFile, source: Source) -> Iterator[ExportedConversation]:
    report = ExportedConversation(file.name)
    try:
        with file.open() as text:
            entries = _open_entries(text)
            first = list[Entry]()
            known: ExportFormat | None = None
            for entry in islice(entries, _LOOKED_AT):
                first.append(entry)
                known = find_format(entry.value)
                if known is not None:
                    break
            if known is None and file.found and _SIDE.fullmatch(file.own_name):
                report.skipped[SIDE_FILES] += 1
            elif known is None:
                text.seek(0)
                report.report(UNREAD_FILES, file.name, _describe(first, text.read(_HEAD)))
            else:
                for conversation in known.read(chain(first, entries), source):
                    conversation.format = known.name
                    yield conversation
    except UnpacksTooMuchError:
        raise
    except NotAConversationError as error:
        if file.found and _SIDE.fullmatch(file.own_name):  # a picture without an ending
            report.skipped[SIDE_FILES] += 1
        else:
            report.report(UNREAD_FILES, str(error))
    if report.unread.counts or report.skipped:
        yield report


def _describe(entries: list[Entry], head: str) -> str:
    """What a file holds that nobody knows, in a few words."""
    if not entries:
        return "no conversation was found in it" if head.strip() else "it is empty"
    value = entries[0].value
    if isinstance(value, NotAConversationError):
        return str(value)
    if isinstance(value, dict):
        return "it has " + ", ".join(f"{key!r:.40}" for key in list(value)[:5])
    return f"it begins with {value!r:.60}"


def _open_entries(text: TextIO) -> Iterator[Entry]:
    """The entries of a file: of JSON, of a page of HTML, or the lines of a chat."""
    head = text.read(_HEAD)
    text.seek(0)
    lines = [line for line in head.splitlines() if line.strip()]
    if any(FORMATS["whatsapp"].recognizes(line) for line in lines[:5]):
        return (Entry(line, f"line {n}") for n, line in enumerate(text, 1))
    if head.lstrip().startswith("<"):
        return read_activity_page(text)
    return read_entries(text, holds_conversation)
