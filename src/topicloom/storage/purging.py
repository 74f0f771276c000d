"""Removing messages for good, wherever a session's chains hold them or something made of them.

What will be removed is worked out first, so that it can be shown before it is done. Forks count:
a message goes from every branch that has it, and what was made of it from every topic that has it
on any branch.
What tells the rest from what is removed goes last: killed on the way, the same purge finds what is
left. `purged_rows` decides what is left of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from topicloom.state.hierarchy import strip_number
from topicloom.state.safe_text import KnownText
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.base import (
    CHANGES,
    EDITS,
    LEDGER,
    RANGES,
    ROSTER,
    SUPERSEDED,
    TRANSCRIPT,
    TURNS,
)
from topicloom.storage.chain import PURGED
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row, from_row, to_row
from topicloom.storage.purged_rows import PurgedTexts, strip_message

_Rows = dict[str, Row]
"""Rows by ref."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The entries that a purge removes, and the rest that it leaves of them."""

    messages: tuple[str, ...]
    """Short ids of the messages; those that were purged before are not among them."""
    versions: tuple[StoredMessage, ...]
    """What was said in their places on other branches, and repeats them; it goes too."""
    topics: tuple[str, ...]
    """Topics that hold any of them, in any branch, and parts that have their names from these.
    Their names, briefs and summaries go too."""
    entries: Mapping[str, Mapping[str, Row]]
    """By chain, in the order in which it is done, and by ref: what stays of an entry."""
    session: Session
    """The session, of whose topics copies for people are written anew."""


def plan_purge(
    log: SessionLog,
    session: Session,
    refs: Sequence[str],
    *,
    edits: bool = False,
    stale: Sequence[StoredMessage] = (),
) -> PurgePlan:
    """The plan by which some messages are removed, and copies of them on other branches.

    Args:
        log: The session's chains.
        session: The session, on the branch of the messages.
        refs: Refs of the messages in the transcript.
        edits: True to remove other versions of them too: what they were changed to, and what was
            said in their places on other branches.
        stale: Of what they were changed to, that which goes though the newest words stay.

    Raises:
        StorageError: A message cannot be read, so that it is unknown where else it stands.
    """
    named = dict(zip(refs, map(_unmark, log.read(TRANSCRIPT, refs)), strict=True))
    transcript, branch = read_all_rows(log, TRANSCRIPT), log.refs(TRANSCRIPT, session.transcript)
    copies, versions = _find_on_other_branches(log, branch, named, transcript)
    versions = versions if edits else {}
    # What is named goes last, the oldest at the end: by it the others are found, and who quotes it.
    newest_first = dict(reversed(named.items()))
    rows = {ref: r for ref, r in (versions | copies | newest_first).items() if "text" in r}
    changed: list[Row] = list(map(to_row, stale))
    if edits:
        changed = _find_edited(log, [*named.values(), *rows.values()])
    ids = {row["id"] for row in named.values()}
    messages = [r["id"] for r in (*named.values(), *changed) if r["id"] in ids and "text" in r]
    words = KnownText("\n".join(map(_get_words, [*rows.values(), *changed])))

    found = set(rows)
    found |= {ref for ref, row in named.items() if row["id"] in {r["id"] for r in changed}}
    topics, entries = _plan_topics(log, words, found, messages)
    entries[SUPERSEDED] = _strip_edits(read_all_rows(log, SUPERSEDED), changed)
    entries[TRANSCRIPT] = _strip_queries(transcript, words) | {
        ref: _strip_row(row) for ref, row in rows.items()
    }
    return PurgePlan(
        messages=tuple(dict.fromkeys(messages)),
        versions=tuple(from_row(row) for ref, row in versions.items() if ref in rows),
        topics=tuple(topics),
        entries={chain: e for chain, e in entries.items() if e},
        session=session,
    )


def _plan_topics(
    log: SessionLog, words: KnownText, refs: Collection[str], messages: Sequence[str]
) -> tuple[Collection[str], dict[str, _Rows]]:
    """The topics that have what goes, or have their names from one; and what is left, by chain.

    The chains are those of names, briefs and notes; `refs` are those of what goes.
    """
    roster = list(map(Topic.model_validate, read_all_rows(log, ROSTER).values()))
    holders, referring = find_holders(log, refs)
    holding = _find_heirs(roster, holders)
    gone = PurgedTexts(
        messages=frozenset(messages),
        topics=frozenset(holding),
        names=frozenset(topic.name for topic in roster if topic.id in holding),
        words=words,
        referring=frozenset(referring.difference(holding)),
    )
    stripped = _strip_chains(log, gone)
    # Others have their names from the holders', by which they are found: these go behind them.
    ordered = sorted(stripped[ROSTER].items(), key=lambda entry: entry[1]["id"] in holders)
    held = [topic for topic in dict.fromkeys(t.id for t in roster) if topic in holding]
    return held, {**stripped, ROSTER: dict(ordered)}


def find_holders(log: SessionLog, refs: Collection[str]) -> tuple[set[str], set[str]]:
    """Topics that have, or had, any of some messages on any branch, and topics that refer to any.

    The messages are given by their refs in the transcript.
    """
    holders, referring = set[str](), set[str]()
    for row, held in read_all_ranges(log):
        if not held.isdisjoint(refs):
            (referring if row.get("also") else holders).add(row["topic"])
    return holders, referring


def read_all_ranges(log: SessionLog) -> Iterator[tuple[Row, set[str]]]:
    """The rows of the ranges of all branches, each with its messages' refs in the transcript."""
    prevs = log.entries(TRANSCRIPT)
    for row in read_all_rows(log, RANGES).values():
        ref, held = row["at"], set[str]()
        for _ in range(row["first"], row["last"] + 1):
            held.add(ref)
            ref = prevs.get(ref)
        yield row, held


def _find_on_other_branches(
    log: SessionLog, branch: Sequence[str], named: _Rows, transcript: _Rows
) -> tuple[_Rows, _Rows]:
    """What other branches have of some messages of a branch, by ref: copies, and other versions.

    Writers who take over what others wrote, write it anew, behind their own. A version is what was
    said in the place of a message, as an edit in a chat makes it, if it repeats that, and the rest
    of its round.
    """
    prevs, own = log.entries(TRANSCRIPT), set(branch)
    others = {ref: row for ref, row in transcript.items() if ref not in own}
    if not others:
        return {}, {}
    known: dict[object, list[Row]] = {}
    for row in named.values():
        known.setdefault(_get_sender(row), []).append(row)
    copies = {
        ref: row
        for ref, row in others.items()
        if any(_is_copy(row, one) for one in known.get(_get_sender(row), ()))
    }
    taken_over = {_get_sender(row) for ref, row in transcript.items() if ref in own}
    words = KnownText("\n".join(map(_get_words, named.values())))
    places = {(prevs[ref], row["role"] == "user") for ref, row in named.items()}
    following: dict[str | None, list[str]] = {}
    for ref in others:
        following.setdefault(prevs[ref], []).append(ref)
    left = [
        ref
        for ref, row in others.items()
        if (prevs[ref], row["role"] == "user") in places
        and _get_sender(row) not in taken_over
        and words.is_repeated_in(row.get("text") or _get_words(row))
    ]
    versions: _Rows = {}
    while left:
        ref = left.pop()
        versions[ref] = others[ref]
        left += [r for r in following.get(ref, ()) if others[r]["role"] != "user"]
    return copies, versions


def _get_sender(row: Row) -> tuple[str, str]:
    """Equal for copies of a message: the id that the application gave it, or when it was said."""
    return row.get("source") or row["time"], row["role"]


def _is_copy(row: Row, other: Row) -> bool:
    """True for messages of one sender that say the same, or where that is gone were so at once."""
    compared = ("text", "whole") if "text" in row and "text" in other else ("time",)
    return all(row.get(key) == other.get(key) for key in compared)


def _get_version(row: Row) -> tuple[str, str | None]:
    """What a message and what it is changed to have in common, on a branch."""
    return row["id"], row.get("source")


def _get_words(row: Row) -> str:
    return f"{row.get('text', '')} {row.get('whole', '')}"


def _find_heirs(roster: Collection[Topic], holders: Iterable[str]) -> list[str]:
    """Topics, and those that have a name of theirs: parts have it with a number."""
    found, named = list(holders), [t for t in roster if "named" not in t.by_hand]
    while True:
        names = {strip_number(topic.name) for topic in named if topic.id in found}
        heirs = {topic.id for topic in named if strip_number(topic.name) in names}
        if heirs <= set(found):
            return found
        found += sorted(heirs.difference(found))


def _find_edited(log: SessionLog, rows: Iterable[Row]) -> list[Row]:
    """What messages were changed to, oldest first."""
    versions = set(map(_get_version, rows))
    changed = (
        row for edit in read_all_rows(log, SUPERSEDED).values() for row in edit.get("changed", ())
    )
    edited = map(_read_changed, changed)
    return [r for r in edited if _get_version(r) in versions and r["text"] != REMOVED]


def _strip_chains(log: SessionLog, gone: PurgedTexts) -> dict[str, _Rows]:
    """By chain and ref, what is left of entries that hold something made of what is removed."""
    strips = {
        LEDGER: gone.strip_note,
        TURNS: gone.strip_receipt,
        EDITS: gone.strip_edit,
        CHANGES: gone.strip_change,
        ROSTER: gone.strip_topic,  # its names are looked for in the others
    }
    return {
        chain: _find_changed(read_all_rows(log, chain), strip) for chain, strip in strips.items()
    }


def _find_changed(rows: _Rows, change: Callable[[Row], Row]) -> _Rows:
    """Those of some rows that a change makes others, as they are then."""
    return {ref: new for ref, row in rows.items() if (new := change(row)) != row}


def execute_purge(log: SessionLog, plan: PurgePlan) -> int:
    """Remove what a plan says; returns how many entries were purged that had not been before.

    Whoever has the session open learns of it, also where an earlier call was killed before that.
    """
    count = sum(log.purge(chain, list(keep), keep) for chain, keep in plan.entries.items())
    if not plan.entries and log.entries(TRANSCRIPT):
        log.announce_purge()
    return count


def read_all_rows(log: SessionLog, chain: str) -> dict[str, Row]:
    """The rows of a chain that can be read, of all branches, by ref."""
    return {ref: _unmark(row) for ref, row in log.rows(chain).items()}


def _unmark(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != PURGED}


def _strip_queries(rows: _Rows, words: KnownText) -> _Rows:
    """Those of some messages that were rewritten to tell what goes, as they were said."""
    return {
        ref: {key: value for key, value in row.items() if key != "query"}
        for ref, row in rows.items()
        if words.is_repeated_in(row.get("query") or "")
    }


def _strip_edits(rows: _Rows, gone: Collection[Row]) -> _Rows:
    """Edits of the conversation that hold any of what goes, with what is left of that."""

    def strip(row: Row) -> Row:
        changed = [
            {**_strip_row(one), "text": REMOVED} if _read_changed(one) in gone else one
            for one in row["changed"]
        ]
        return {**row, "changed": changed}

    return _find_changed({ref: row for ref, row in rows.items() if row.get("changed")}, strip)


def _strip_row(row: Row) -> Row:
    return strip_message(from_row(row))


def _read_changed(row: Row) -> Row:
    """A message that an edit holds, as a row of a chain."""
    return to_row(StoredMessage.model_validate(row))
