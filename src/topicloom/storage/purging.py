"""Removing messages for good, wherever a session's chains hold them or something made of them.

What will be removed is worked out first, so that it can be shown before it is done. Forks count:
a message goes from every branch that shares it, and from every topic that any branch moved it
to. The transcript comes last: killed on the way, the same purge finds what is left.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topicloom.state.safe_text import remove_shared
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.base import CHANGES, EDITS, LEDGER, ROSTER, SUPERSEDED, TRANSCRIPT, TURNS
from topicloom.storage.chain import PURGED, link
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row, from_row, to_row, to_shell

_CARD_STAYS = ("topic", "messages", "count", "days", "first_at", "last_at")
"""Keys that stay in the summary of an archived topic: numbers and dates."""
_Wanted = Mapping[str, Sequence[Row]]
"""Rows of messages by short id: as they were said, and as they were changed."""
_UNASKED: Row = {"query": "", "when": None, "days": None, "reason": ""}
"""What is left of what a search was asked."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The entries that a purge removes, and the rest that it leaves of them."""

    messages: tuple[str, ...]
    """Short ids of the messages; those that were purged before are not among them."""
    topics: tuple[str, ...]
    """Topics that hold any of them, in any branch. Their names, briefs and summaries go too."""
    entries: Mapping[str, Mapping[str, Row]]
    """By chain, in the order in which it is done, and by ref: what stays of an entry."""
    cards: Mapping[str, Row]
    """By chain: what stays of an archived topic's summary."""


def plan_purge(log: SessionLog, refs: Sequence[str], *, edits: bool = False) -> PurgePlan:
    """The plan by which some messages are removed, by their refs in the transcript.

    With `edits`, what they were changed to goes too.

    Raises:
        StorageError: A message cannot be read, so that it is unknown where else it stands.
    """
    said = dict(zip(refs, log.read(TRANSCRIPT, refs), strict=True))
    rows = {ref: row for ref, row in said.items() if PURGED not in row}
    wanted: dict[str, list[Row]] = {row["id"]: [row] for row in rows.values()}
    if edits:
        for row in _find_edited(log, {row["id"] for row in said.values()}):
            wanted.setdefault(row["id"], []).append(row)
    shells = {message: to_shell(from_row(row)) for message, (row, *_) in wanted.items()}

    table = _all_rows(log, ROSTER)
    topics = {row["id"]: Topic.model_validate(row) for row in table.values()}
    held = {topic: _find_messages(log, topics[topic].chain, wanted) for topic in topics}
    held = {topic: found for topic, found in held.items() if found}
    derived = DerivedTexts(
        messages=frozenset(wanted),
        topics=frozenset(held),
        names=frozenset(row["name"] for row in table.values() if row["id"] in held),
        said="\n".join(
            f"{row.get('text')} {row.get('whole', '')}" for same in wanted.values() for row in same
        ),
    )
    changed = _clean_chains(log, derived, edits)
    in_topics = {
        topics[topic].chain: {ref: shells[message] for ref, message in found.items()}
        for topic, found in held.items()
    }
    in_transcript = {TRANSCRIPT: {ref: shells[row["id"]] for ref, row in rows.items()}}
    cards = {chain: log.archived(chain) for chain in in_topics}
    return PurgePlan(
        messages=tuple(wanted),
        topics=tuple(held),
        entries={c: e for c, e in (changed | in_topics | in_transcript).items() if e},
        cards={
            chain: {key: card.summary[key] for key in _CARD_STAYS if key in card.summary}
            for chain, card in cards.items()
            if card is not None
        },
    )


def _find_edited(log: SessionLog, ids: Container[str]) -> list[Row]:
    """What messages of some short ids were changed to, oldest first."""
    changed = (
        row for edit in _all_rows(log, SUPERSEDED).values() for row in edit.get("changed", ())
    )
    messages = map(StoredMessage.model_validate, changed)
    return [to_row(m) for m in messages if m.id in ids and m.text != REMOVED]


def _clean_chains(log: SessionLog, derived: DerivedTexts, edits: bool) -> dict[str, dict[str, Row]]:
    """By chain and ref, the entries that hold something made of what is removed, without it."""
    cleaning = {
        ROSTER: derived.without_in_topic,
        LEDGER: derived.without_in_note,
        TURNS: derived.without_in_receipt,
        EDITS: derived.without_in_edit,
        CHANGES: derived.without_in_change_made,
    }
    if edits:
        cleaning[SUPERSEDED] = derived.without_in_change
    return {
        chain: {
            ref: cleaned
            for ref, row in _all_rows(log, chain).items()
            if (cleaned := clean(row)) != row
        }
        for chain, clean in cleaning.items()
    }


def execute_purge(log: SessionLog, plan: PurgePlan) -> int:
    """Remove what a plan says; returns how many entries were purged that had not been before."""
    return sum(
        log.purge(chain, list(keep), keep, plan.cards.get(chain))
        for chain, keep in plan.entries.items()
    )


def _all_rows(log: SessionLog, chain: str) -> dict[str, dict[str, Any]]:
    """The rows of a chain that can be read, of all branches, by ref."""
    rows = log.readable(chain, list(log.entries(chain)))
    return {ref: {k: v for k, v in row.items() if k != PURGED} for ref, row in rows.items()}


def _find_messages(log: SessionLog, chain: str, wanted: _Wanted) -> dict[str, str]:
    """The entries of a topic's chain that are wanted messages: short ids by ref."""
    prevs = log.entries(chain)
    readable = log.readable(chain, list(prevs))
    found = {ref: _identify(readable.get(ref), prevs[ref], ref, wanted) for ref in prevs}
    return {ref: message for ref, message in found.items() if message is not None}


def _identify(row: Row | None, prev: str | None, ref: str, wanted: _Wanted) -> str | None:
    """The id of an entry's message if wanted. One that cannot be read is identified by its ref.

    Another branch may have another message of that number: all the words have to be the same.
    """
    if row is None:
        every = ((message, one) for message, same in wanted.items() for one in same)
        return next((message for message, one in every if link(prev, one) == ref), None)
    message = str(row.get("id"))
    same = link(None, row) in (link(None, one) for one in wanted.get(message, ()))
    return message if same else None


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
    said: str
    """What was said in the messages."""

    def without_in_topic(self, row: Row) -> Row:
        """A row of the roster: a new name, no brief, no summary.

        A name that a person gave stays, unless it repeats what was said.
        """
        if row["id"] not in self.topics:
            return row
        emptied = {key: "" for key in ("brief", "summary") if key in row}
        marks = row.get("by_hand", ())
        if "named" in marks and remove_shared(row["name"], self.said) == row["name"]:
            return {**row, **emptied}
        marked = {"by_hand": [m for m in marks if m != "named"]} if marks else {}
        return {**row, **emptied, **marked, "name": _plain_name(row["id"])}

    def without_in_note(self, row: Row) -> Row:
        """A row of the ledger: no summaries of these topics, no searches made for the messages."""
        asked = f"m{row['after']}" in self.messages
        names = [name for name in row.get("candidates", ()) if name not in self.names]
        topics = [self._without_in_part(part) for part in row.get("topics", ())]
        searched = "" if asked else remove_shared(row.get("searched", ""), self.said)
        layers = [self._without_in_layer(layer, asked) for layer in row.get("layers", ())]
        cleaned = {**row, "topics": topics, "candidates": names, "searched": searched}
        if asked and row.get("scope"):
            cleaned["scope"] = {**row["scope"], "missed": ""}
        if "listed" in row:
            cleaned["listed"] = {t: s for t, s in row["listed"].items() if t not in self.topics}
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

    def without_in_change(self, row: Row) -> Row:
        """An edit of the conversation: shells of the messages that it changed."""
        changed = [
            to_shell(StoredMessage.model_validate(one)) | {"text": REMOVED}
            if f"m{one['seq']}" in self.messages
            else one
            for one in row.get("changed", ())
        ]
        return {**row, "changed": changed} if changed else row

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

    def _clean(self, part: Row) -> Row:
        """A search or a call without what was said."""
        texts = {k: part[k] for k in ("query", "reason", "failure") if part.get(k)}
        cleaned: Row = {k: remove_shared(text, self.said) for k, text in texts.items()}
        remarks = [remove_shared(remark, self.said) for remark in part.get("remarks", ())]
        return {**part, **cleaned} | ({"remarks": remarks} if remarks else {})

    def _hide_names(self, event: str) -> str:
        for name in self.names:
            event = event.replace(f"“{name}”", "“…”")
        return event


def _plain_name(topic: str) -> str:
    """A name that says nothing, and that no other topic has: some look topics up by name."""
    return f"topic {topic}"
