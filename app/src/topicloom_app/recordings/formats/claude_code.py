"""Claude Code: the session files `*.jsonl` that it keeps for each project, an event a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from topicloom_app.recordings.exported import (
    EMPTY,
    HIDDEN,
    INSTRUCTIONS,
    ExportedConversation,
    clean_title,
)
from topicloom_app.recordings.formats.base import (
    Source,
    check_entry,
    read_blocks,
    read_branches,
    read_role,
)
from topicloom_app.recordings.json_stream import Entry

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_ROLES = ("user", "assistant")
_INJECTED = re.compile(r"<(?:command-|local-command-|system-reminder|bash-)")
"""How messages begin that the program wrote in the user's name."""
_STOPPED = "[Request interrupted by user"


class ClaudeCode:
    """Sessions of Claude Code's. A session may have many subjects."""

    name = "claude-code"

    def recognizes(self, entry: Any) -> bool:
        """An event of a session."""
        if not isinstance(entry, dict):
            return False
        return "sessionId" in entry or (entry.get("type") == "summary" and "leafUuid" in entry)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The session of a file, and others that it holds parts of."""
        report = ExportedConversation(source.name)
        titles, sessions = dict[str, str](), dict[str, dict[str, Mapping[str, Any]]]()
        for entry in entries:
            with report.reading(entry.place):
                _sort(check_entry(entry.value), titles, sessions, report)
        for id_, said in sessions.items():
            leaf = next((titles[uuid] for uuid in said if uuid in titles), "")
            name = clean_title(titles.get(id_) or leaf)
            yield from _read_session(id_, name, said, source)
        if report.skipped or report.unread.counts:
            yield report


def _sort(
    event: Mapping[str, Any],
    titles: dict[str, str],
    sessions: dict[str, dict[str, Mapping[str, Any]]],
    report: ExportedConversation,
) -> None:
    kind = event["type"]
    if kind in _TITLES:
        titles[str(event.get("leafUuid") or event.get("sessionId"))] = event[_TITLES[kind]]
    elif kind not in _ROLES:
        report.skipped[INSTRUCTIONS] += 1
    elif event.get("isSidechain"):
        report.skipped["what agents said to each other"] += 1
    else:
        said = sessions.setdefault(str(event["sessionId"]), {})
        said[str(event.get("uuid") or len(said))] = event


def _read_session(
    id_: str, name: str, said: Mapping[str, Mapping[str, Any]], source: Source
) -> Iterator[ExportedConversation]:
    # What links messages is also in events that say nothing, such as progress: a gap is no branch.
    parents = {
        uuid: event.get("parentUuid") or event.get("logicalParentUuid")
        for uuid, event in said.items()
    }
    conversation = ExportedConversation(id_, None, name, place=f"session {id_}")
    return read_branches(said, parents, conversation, source, _tell, time="timestamp")


def _tell(uuid: str, event: Mapping[str, Any], into: ExportedConversation) -> None:
    message = event["message"]
    role, content = read_role(message["role"]), message.get("content")
    if event.get("isMeta") or event.get("isCompactSummary"):
        into.skipped[INSTRUCTIONS] += 1
        return
    kinds = (
        {b.get("type") for b in content if isinstance(b, dict)}
        if isinstance(content, list)
        else set()
    )
    text = read_blocks(content, into, f"message {uuid}")
    begins = text.lstrip()
    if _INJECTED.match(begins) or begins.startswith(_STOPPED):
        into.skipped[HIDDEN] += 1
    elif begins:
        into.say(role, uuid, event.get("timestamp"), text)
    elif not kinds & {"tool_use", "tool_result", "thinking", "redacted_thinking"}:
        into.skipped[EMPTY] += 1
