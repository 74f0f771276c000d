"""What was made of messages that are gone: the rows that hold some of it, without it."""

from __future__ import annotations

from dataclasses import dataclass

from topicloom.state.safe_text import KnownText
from topicloom.storage.message_rows import Row

_UNASKED: Row = {"query": "", "when": None, "days": None, "reason": ""}
"""What is left of what a search was asked."""


@dataclass(frozen=True, slots=True)
class DerivedTexts:
    """Removes what was made of some messages from rows: names, briefs, summaries, searches.

    Rows are taken as they are stored, so that what this version does not know of them stays.
    """

    messages: frozenset[str]
    """Short ids of the messages."""
    topics: frozenset[str]
    """Ids of the topics that hold them."""
    names: frozenset[str]
    """Names that these topics ever had."""
    said: KnownText
    """What was said in the messages."""
    lent: frozenset[str] = frozenset()
    """Ids of other topics whose readers were shown any of them."""

    def without_in_topic(self, row: Row) -> Row:
        """A row of the roster: a new name, no brief, no summary.

        A name that a person gave stays, unless it repeats what was said, and so does what a topic
        has that only borrowed the messages. The title of an imported chat goes.
        """
        held = row["id"] in self.topics
        if not held and row["id"] not in self.lent:
            return row
        texts = {key: row[key] for key in ("brief", "summary") if key in row}
        told = {key: "" if held else self._hide(text) for key, text in texts.items()}
        marks = row.get("by_hand", ())
        if ("named" in marks or not held) and not self.said.is_repeated_in(row["name"]):
            return {**row, **told}
        marked = {"by_hand": [m for m in marks if m != "named"]} if marks else {}
        titled = {"titled": False} if row.get("titled") else {}
        return {**row, **told, **marked, **titled, "name": _plain_name(row["id"])}

    def without_in_note(self, row: Row) -> Row:
        """A row of the ledger: no summaries of these topics, no searches made for the messages."""
        asked = f"m{row['after']}" in self.messages
        names = [name for name in row.get("candidates", ()) if name not in self.names]
        topics = [self._without_in_part(part) for part in row.get("topics", ())]
        searched = "" if asked else self._hide(row.get("searched", ""))
        layers = [self._without_in_layer(layer, asked) for layer in row.get("layers", ())]
        cleaned = {**row, "topics": topics, "candidates": names, "searched": searched}
        if asked and row.get("scope"):
            cleaned["scope"] = {**row["scope"], "missed": ""}
        if "listed" in row:
            listed = {t: s for t, s in row["listed"].items() if t not in self.topics}
            cleaned["listed"] = {
                t: self._hide(s) if t in self.lent else s for t, s in listed.items()
            }
        return cleaned | ({"layers": layers} if layers else {})

    def without_in_receipt(self, row: Row) -> Row:
        """A receipt: the same, no names of the topics in what happened, and nothing that was said
        in searches and in what went wrong."""
        asked = row["user"] in self.messages
        searches = [
            {**search, **_UNASKED, "scope": {**search.get("scope", {}), "missed": ""}}
            if asked
            else self._clean(search)
            for search in row.get("searches", ())
        ]
        quoted = [self._without_in_part(part) for part in row.get("quoted", ())]
        events = [self._hide_names(event) for event in row.get("events", ())]
        planned: Row = {"plan": None, "edits": [], "edit_errors": []} if asked else {}
        calls = [self._clean(call) for call in row.get("calls", ())]
        cleaned = {**row, "searches": searches, "quoted": quoted, "events": events, "calls": calls}
        return cleaned | {key: value for key, value in planned.items() if key in row}

    def without_in_edit(self, row: Row) -> Row:
        """An entry of the journal: no edits that the messages asked for."""
        return {**row, "edits": []} if row["message"] in self.messages else row

    def without_in_change_made(self, row: Row) -> Row:
        """An entry of the journal of changes: no names of the topics."""
        return {**row, "event": self._hide_names(row["event"])}

    def _without_in_layer(self, layer: Row, asked: bool) -> Row:
        """A layer of a note: nothing of the topics, and no reason that tells what was asked."""
        gone = {f"{kind}_{topic}" for kind in ("topic", "narrative") for topic in self.topics}
        entries = layer.get("entries", [])
        stay = [entry for entry in entries if entry["id"] not in gone]
        if len(stay) == len(entries) and not asked:
            return layer
        return {**layer, "entries": stay, "rationale": ""}

    def _without_in_part(self, part: Row) -> Row:
        """One topic's part of a note. The ids of what it quotes stay: they say nothing.

        Readers tell of what they are not asked to quote, and of what other topics lend them.
        """
        topic = part["topic"]
        if topic in self.topics or not self.messages.isdisjoint(part["quotes"]):
            return {**part, "name": _plain_name(topic), "summary": ""}
        if topic in self.lent:
            return {**part, "summary": ""}
        return {**part, "summary": self._hide(part.get("summary", ""))}

    def _clean(self, part: Row) -> Row:
        """A search or a call without what was said."""
        texts = {k: part[k] for k in ("query", "reason", "failure") if part.get(k)}
        cleaned: Row = {k: self._hide(text) for k, text in texts.items()}
        remarks = list(map(self._hide, part.get("remarks", ())))
        return {**part, **cleaned} | ({"remarks": remarks} if remarks else {})

    def _hide(self, text: str) -> str:
        return self.said.remove_from(text)

    def _hide_names(self, event: str) -> str:
        for name in self.names:
            event = event.replace(f"“{name}”", "“…”")
        return event


def _plain_name(topic: str) -> str:
    """A name that says nothing, and that no other topic has: some look topics up by name."""
    return f"topic {topic}"
