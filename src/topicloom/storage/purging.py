"""Removing messages for good, wherever a session's chains hold them or something made of them.

What will be removed is worked out first, so that it can be shown before it is done. Forks count:
a message goes from every branch that has it, and from every topic that any branch moved it to.
What tells the rest from what is removed goes last: killed on the way, the same purge finds what is
left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topicloom.state.hierarchy import strip_number
from topicloom.state.safe_text import KnownText
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.base import CHANGES, EDITS, LEDGER, ROSTER, SUPERSEDED, TRANSCRIPT, TURNS
from topicloom.storage.chain import PURGED, link
from topicloom.storage.derived_texts import DerivedTexts
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row, from_row, to_row, to_shell

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


def plan_purge(
    log: SessionLog,
    refs: Sequence[str],
    branch: Sequence[str],
    *,
    edits: bool = False,
    stale: Sequence[StoredMessage] = (),
) -> PurgePlan:
    """The plan by which some messages are removed, and copies of them on other branches.

    Args:
        log: The session's chains.
        refs: Refs of the messages in the transcript.
        branch: Refs of all messages of their branch.
        edits: True to remove other versions of them too: what they were changed to, and what was
            said in their places on other branches.
        stale: Of what they were changed to, that which goes though the newest words stay.

    Raises:
        StorageError: A message cannot be read, so that it is unknown where else it stands.
    """
    asked = dict(zip(refs, map(_unmark, log.read(TRANSCRIPT, refs)), strict=True))
    transcript = _all_rows(log, TRANSCRIPT)
    copies, versions = _find_beside(log, branch, asked, transcript)
    versions = versions if edits else {}
    # What is asked for goes last: by it the others are found.
    rows = {ref: r for ref, r in (versions | copies | asked).items() if "text" in r}
    changed: list[Row] = list(map(to_row, stale))
    if edits:
        changed = _find_edited(log, [*asked.values(), *rows.values()])
    ids = {row["id"] for row in asked.values()}
    messages = [r["id"] for r in (*asked.values(), *changed) if r["id"] in ids and "text" in r]
    wanted = _Wanted.of([*rows.values(), *changed])

    table = _all_rows(log, ROSTER)
    topics = {row["id"]: Topic.model_validate(row) for row in table.values()}
    found = {topic: wanted.find_in(log, topics[topic].chain) for topic in topics}
    holders = [topic for topic, (held, _) in found.items() if held]
    named = _find_heirs(table.values(), holders)
    borrowers = {row["id"] for row in table.values() if row.get("borrowed")} - set(named)
    derived = DerivedTexts(
        messages=frozenset(messages),
        topics=frozenset(named),
        names=frozenset(row["name"] for row in table.values() if row["id"] in named),
        said=wanted.said,
        lent=frozenset(t for t in borrowers if wanted.is_lent_to(log, topics[t].references)),
    )
    cleaned = _clean_chains(log, derived, _Wanted.of(changed))
    # Others have their names from the holders', which tell them: these go behind them.
    cleaned[ROSTER] = dict(sorted(cleaned[ROSTER].items(), key=lambda e: e[1]["id"] in holders))
    in_topics = {topics[topic].chain: held | rest for topic, (held, rest) in found.items()}
    shells = {ref: wanted.shells[link(None, row)] for ref, row in rows.items()}
    said = {TRANSCRIPT: wanted.clean(transcript) | shells}
    last = {SUPERSEDED: cleaned.pop(SUPERSEDED, {})} | said
    entries = cleaned | in_topics | last
    return PurgePlan(
        messages=tuple(dict.fromkeys(messages)),
        versions=tuple(from_row(row) for ref, row in versions.items() if ref in rows),
        topics=tuple(named),
        entries={chain: e for chain, e in entries.items() if e},
    )


def _find_beside(
    log: SessionLog, branch: Sequence[str], asked: _Rows, transcript: _Rows
) -> tuple[_Rows, _Rows]:
    """What other branches have of some messages of a branch, by ref: copies, and other versions.

    Writers who take over what others said write it anew, behind their own. A version is what was
    said in the place of a message, as an edit in a chat makes it, if it repeats that, and the rest
    of its round.
    """
    prevs, own = log.entries(TRANSCRIPT), set(branch)
    beside = {ref: row for ref, row in transcript.items() if ref not in own}
    if not beside:
        return {}, {}
    known: dict[object, list[Row]] = {}
    for row in asked.values():
        known.setdefault(_get_sender(row), []).append(row)
    copies = {
        ref: row
        for ref, row in beside.items()
        if any(_is_copy(row, one) for one in known.get(_get_sender(row), ()))
    }
    taken_over = {_get_sender(row) for ref, row in transcript.items() if ref in own}
    said = KnownText("\n".join(map(_get_words, asked.values())))
    places = {(prevs[ref], row["role"] == "user") for ref, row in asked.items()}
    following: dict[str | None, list[str]] = {}
    for ref in beside:
        following.setdefault(prevs[ref], []).append(ref)
    left = [
        ref
        for ref, row in beside.items()
        if (prevs[ref], row["role"] == "user") in places
        and _get_sender(row) not in taken_over
        and said.is_repeated_in(row.get("text") or _get_words(row))
    ]
    versions: _Rows = {}
    while left:
        ref = left.pop()
        versions[ref] = beside[ref]
        left += [r for r in following.get(ref, ()) if beside[r]["role"] != "user"]
    return copies, versions


def _get_sender(row: Row) -> tuple[str, str]:
    """Equal for copies of a message: the id that the application gave it, or when it was said."""
    return row.get("source") or row["time"], row["role"]


def _is_copy(row: Row, other: Row) -> bool:
    """True for messages of one sender that say the same, or where that is gone were so at once."""
    told = ("text", "whole") if "text" in row and "text" in other else ("time",)
    return all(row.get(key) == other.get(key) for key in told)


def _get_version(row: Row) -> tuple[str, str | None]:
    """What a message and what it is changed to have in common, on a branch."""
    return row["id"], row.get("source")


def _get_words(row: Row) -> str:
    return f"{row.get('text', '')} {row.get('whole', '')}"


def _find_heirs(rows: Collection[Row], topics: Iterable[str]) -> list[str]:
    """Topics, and the parts of them that were given their names and a number."""
    names: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}
    for row in rows:
        if "named" not in row.get("by_hand", ()):
            names.setdefault(row["id"], set()).add(strip_number(row["name"]))
        if row.get("parent"):
            parts.setdefault(row["parent"], set()).add(row["id"])
    found = list(topics)
    for topic in found:  # grows
        heirs = parts.get(topic, set()).difference(found)
        shared = names.get(topic, set())
        found += sorted(heir for heir in heirs if not shared.isdisjoint(names.get(heir, ())))
    return found


def _find_edited(log: SessionLog, said: Iterable[Row]) -> list[Row]:
    """What messages were changed to, oldest first."""
    versions = set(map(_get_version, said))
    changed = (
        row for edit in _all_rows(log, SUPERSEDED).values() for row in edit.get("changed", ())
    )
    rows = map(to_row, map(StoredMessage.model_validate, changed))
    return [r for r in rows if _get_version(r) in versions and r["text"] != REMOVED]


def _clean_chains(log: SessionLog, derived: DerivedTexts, changed: _Wanted) -> dict[str, _Rows]:
    """By chain and ref, the entries that hold something made of what is removed, without it."""
    cleaning = {
        LEDGER: derived.without_in_note,
        TURNS: derived.without_in_receipt,
        EDITS: derived.without_in_edit,
        CHANGES: derived.without_in_change_made,
        ROSTER: derived.without_in_topic,  # its names are looked for in the others
        SUPERSEDED: changed.without_in_change,
    }
    return {
        chain: {
            ref: cleaned
            for ref, row in _all_rows(log, chain).items()
            if (cleaned := clean(row)) != row
        }
        for chain, clean in cleaning.items()
    }


def execute_purge(log: SessionLog, plan: PurgePlan) -> int:
    """Remove what a plan says; returns how many entries were purged that had not been before.

    Whoever has the session open learns of it, also where an earlier call was killed before that.

    Raises:
        StorageError: What an earlier version packed is damaged; nothing was purged.
    """
    for chain in {Topic.model_validate(row).chain for row in _all_rows(log, ROSTER).values()}:
        log.unpack(chain)  # with a card that may tell what is removed
    count = sum(log.purge(chain, list(keep), keep) for chain, keep in plan.entries.items())
    if log.entries(TRANSCRIPT):
        log.tell_purge()
    return count


def _all_rows(log: SessionLog, chain: str) -> _Rows:
    """The rows of a chain that can be read, of all branches, by ref."""
    rows = log.readable(chain, list(log.entries(chain)))
    return {ref: _unmark(row) for ref, row in rows.items()}


def _unmark(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != PURGED}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Messages that are to be removed, as they stand in any branch, and as they were changed."""

    rows: Sequence[Row]
    shells: Mapping[str, Row]
    """What is left of them, by what `link` makes of them alone."""
    said: KnownText

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Wanted:
        """The messages in some rows."""
        shells = {link(None, row): to_shell(from_row(row)) for row in rows}
        return cls(rows, shells, KnownText("\n".join(map(_get_words, rows))))

    def find_in(self, log: SessionLog, chain: str) -> tuple[_Rows, _Rows]:
        """What stays of the entries of a topic: of wanted messages, and of others that tell them.

        One that cannot be read is identified by its ref. Another branch may have another message
        of that number: all the words have to be the same.
        """
        prevs, rows, ids = log.entries(chain), _all_rows(log, chain), {r["id"] for r in self.rows}
        names = {ref: link(None, row) for ref, row in rows.items() if row["id"] in ids}
        for ref in prevs.keys() - rows.keys():
            fits = (row for row in self.rows if link(prevs[ref], row) == ref)
            names[ref] = next((link(None, row) for row in fits), "")
        held = {ref: self.shells[name] for ref, name in names.items() if name in self.shells}
        return held, self.clean({ref: row for ref, row in rows.items() if ref not in held})

    def clean(self, rows: _Rows) -> _Rows:
        """Those of some messages that were rewritten to tell what is wanted, as they were said."""
        return {
            ref: {key: value for key, value in row.items() if key != "query"}
            for ref, row in rows.items()
            if self.said.is_repeated_in(row.get("query") or "")
        }

    def without_in_change(self, row: Row) -> Row:
        """An edit of the conversation: of the messages that it changed, shells."""
        changed = map(StoredMessage.model_validate, row.get("changed", ()))
        names = [link(None, to_row(message)) for message in changed]
        shown = [
            {**self.shells[name], "text": REMOVED} if name in self.shells else one
            for name, one in zip(names, row.get("changed", ()), strict=True)
        ]
        return {**row, "changed": shown} if shown else row

    def is_lent_to(self, log: SessionLog, references: str) -> bool:
        """True if a topic's chain of references leads to any of them."""
        numbers = {int(row["seq"]) for row in self.rows}
        spans = _all_rows(log, references).values()
        return any(row["first"] <= n <= row["last"] for row in spans for n in numbers)
