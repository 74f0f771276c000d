"""What must hold of a session, worked out from its bytes alone: nothing here is the package's."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faults.raw import Body, Entry, Raw

Said = tuple[str, str]
"""Role and text of a message."""


@dataclass(frozen=True)
class Found:
    """What a check found."""

    problems: tuple[str, ...]
    """Each breach in words; empty if all holds."""
    messages: tuple[Said, ...]
    """The conversation of the newest checkpoint; of a purged message the text is empty."""

    @property
    def users(self) -> list[str]:
        """What the user said, in order."""
        return [text for role, text in self.messages if role == "user"]


def check(raw: Raw) -> Found:
    """Check a session: hashes, links, numbers, and that every message has one place."""
    problems = [*raw.problems, *_wrong_hashes(raw)]
    session = raw.session
    if session is None:
        return Found(tuple(problems), ())
    walk = _Walk(raw, problems)
    rows = walk.chain("transcript", session.get("transcript"))
    count, tail = session.get("count", 0), session.get("tail", 1)
    numbers = [(row.get("id"), row.get("seq")) for row in rows]
    if numbers != [(f"m{n}", n) for n in range(1, count + 1)]:
        problems.append(f"the checkpoint counts {count} messages, the transcript has {numbers}")
    gone = set[int]()
    for edit in walk.chain("superseded", session.get("superseded")):
        gone |= set(edit.get("removed", ()))
        gone -= {changed["seq"] for changed in edit.get("changed", ())}
    homes = dict[int, str]()
    for row in walk.chain("ranges", session.get("ranges")):
        if not row.get("also"):
            homes |= dict.fromkeys(range(row["first"], row["last"] + 1), str(row["topic"]))
    held = Counter(topic for number, topic in homes.items() if number not in gone)
    topics = {row["id"]: row for row in walk.chain("roster", session.get("roster"))}
    for topic in {*topics, *held}:
        counted = topics.get(topic, {}).get("count", 0)
        if counted != held[topic]:
            problems.append(f"{topic} counts {counted}, it has {held[topic]}")
    wrong = {n for n in range(1, count + 1) if n not in gone and (n in homes) != (n < tail)}
    if wrong:
        problems.append(f"the tail begins at m{tail}; in a topic, or in none, are {wrong}")
    turns = [row.get("turn") for row in walk.chain("turns", session.get("turns"))]
    if turns != list(range(1, session.get("turn", 0) + 1)):
        problems.append(f"receipts of the turns {turns}, and there were {session.get('turn')}")
    for chain in ("ledger", "edits"):
        walk.chain(chain, session.get(chain))
    return Found(tuple(problems), tuple((r.get("role", ""), r.get("text", "")) for r in rows))


def check_told(found: Found, before: Sequence[Said], after: Sequence[Said]) -> list[str]:
    """What is wrong with a conversation that is on its way from one state to another.

    All that was there before is still there, or is what it shall be; what follows comes in order.
    """
    said = found.messages
    if not len(before) <= len(said) <= len(after):
        return [f"{len(said)} messages, and not {len(before)} to {len(after)}"]
    return [
        f"message {n} is {message!r:.200}, and not {after[n - 1]!r:.200}"
        for n, message in enumerate(said, 1)
        if message not in (after[n - 1], *before[n - 1 : n])
    ]


class _Walk:
    def __init__(self, raw: Raw, problems: list[str]) -> None:
        self._raw, self._problems = raw, problems

    def chain(self, name: str, head: str | None) -> list[Body]:
        """Bodies from the beginning of a chain to a head."""
        entries, bodies = self._raw.chains.get(name, {}), list[Body]()
        seen = set[str]()
        while head is not None:
            entry = entries.get(head)
            if entry is None or head in seen:
                self._problems.append(f"{name}: {head} is {'missing' if not entry else 'a circle'}")
                break
            seen.add(head)
            bodies.append(entry.body)
            head = entry.prev
        return bodies[::-1]


def _wrong_hashes(raw: Raw) -> Iterator[str]:
    for chain, entries in raw.chains.items():
        if chain == "purges":  # one row, which every purge replaces: its ref is no hash
            if len(entries) > 1 or any(entry.prev is not None for entry in entries.values()):
                yield f"{chain}: has more than the row of the newest purge"
            continue
        for ref, entry in entries.items():
            if not _fits(ref, entry):
                yield f"{chain}: {ref} is not the hash of its entry"


def _fits(ref: str, entry: Entry) -> bool:
    if "purged" not in entry.body:
        return hash_of(entry.prev, entry.body) == ref
    left = {key: value for key, value in entry.body.items() if key != "purged"}
    return bool(hash_of(ref, left) == entry.body["purged"])


def hash_of(prev: str | None, body: Body) -> str:
    """The ref of a body behind another entry; when it was said does not count."""
    counted = {key: value for key, value in body.items() if key != "time"}
    text = json.dumps([prev, counted], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
