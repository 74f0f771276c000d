"""What else in a session was made of its messages: names, briefs, summaries, what was looked for.

Rows are taken as they are stored, so that what this version does not know of them stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Traces:
    """Takes what was made of some messages out of rows."""

    messages: frozenset[str]
    """Short ids of the messages."""
    topics: frozenset[str]
    """Ids of the topics that hold them."""
    names: frozenset[str]
    """Names that these topics ever had."""

    def without_in_topic(self, row: Row) -> Row:
        """A row of the roster: a new name, no brief, no summary."""
        if row["id"] not in self.topics:
            return row
        emptied = {key: "" for key in ("brief", "summary") if key in row}
        return {**row, **emptied, "name": _plain_name(row["id"])}

    def without_in_note(self, row: Row) -> Row:
        """A row of the ledger: no summaries of these topics, no searches made for the messages."""
        asked = f"m{row['after']}" in self.messages
        names = [name for name in row.get("candidates", ()) if name not in self.names]
        topics = [self._without_in_part(part) for part in row.get("topics", ())]
        searched = "" if asked else row.get("searched", "")
        layers = [self._without_in_layer(layer, asked) for layer in row.get("layers", ())]
        cleaned = {**row, "topics": topics, "candidates": names, "searched": searched}
        return cleaned | ({"layers": layers} if layers else {})

    def without_in_receipt(self, row: Row) -> Row:
        """A receipt: the same, and no names of the topics in what happened."""
        asked = row["user"] in self.messages
        searches = [
            {**search, "query": "", "when": None, "reason": ""} if asked else search
            for search in row.get("searches", ())
        ]
        quoted = [self._without_in_part(part) for part in row.get("quoted", ())]
        events = [self._unnamed(event) for event in row.get("events", ())]
        planned: Row = {"plan": None, "edits": [], "edit_errors": []} if asked else {}
        cleaned = {**row, "searches": searches, "quoted": quoted, "events": events}
        return cleaned | {key: value for key, value in planned.items() if key in row}

    def without_in_edit(self, row: Row) -> Row:
        """An entry of the journal: no edits that the messages asked for."""
        return {**row, "edits": []} if row["message"] in self.messages else row

    def _without_in_layer(self, layer: Row, asked: bool) -> Row:
        """A layer of a note: nothing of the topics, and no reason that tells what was asked."""
        gone = {f"{kind}_{topic}" for kind in ("topic", "narrative") for topic in self.topics}
        entries = layer.get("entries", [])
        stay = [entry for entry in entries if entry["id"] not in gone]
        if len(stay) == len(entries) and not asked:
            return layer
        return {**layer, "entries": stay, "rationale": ""}

    def _without_in_part(self, part: Row) -> Row:
        """One topic's part of a note. The ids of what it quotes stay: they say nothing."""
        if part["topic"] not in self.topics and self.messages.isdisjoint(part["quotes"]):
            return part
        return {**part, "name": _plain_name(part["topic"]), "summary": ""}

    def _unnamed(self, event: str) -> str:
        for name in self.names:
            event = event.replace(f"“{name}”", "“…”")
        return event


def _plain_name(topic: str) -> str:
    """A name that says nothing, and that no other topic has: some look topics up by name."""
    return f"topic {topic}"
