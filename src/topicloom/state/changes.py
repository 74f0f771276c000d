"""Changes to topics that were worked out beside the graph, until a turn of the graph makes them.

Only turns write the table of topics: a second writer could undo one. So a review leaves its
findings as changes, and what a person wants is a change. Those of a review have fingerprints of the
topics that they were worked out from, and one that does not fit any more is passed over; a person
means a topic whatever has become of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel

from topicloom.state.lifecycle import apply_event, get_state, mark_archived
from topicloom.state.safe_text import clip, digest_text
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_names import find_owner
from topicloom.state.topics import Mark, Topic, TopicTable
from topicloom.texts import FilledText

_REVIEWED_FIELDS = set("content name brief summary importance once reviewed status by_hand".split())
_BRIEF = 1_000
"""Characters of a brief."""
REVIEW = "review"
"""The author of a review's changes."""


class TopicChange(BaseModel, frozen=True):
    """The change that a review or a person makes to a topic."""

    topic: str
    """Id of the topic; "" for a new one."""
    seen: str = ""
    """Fingerprint of the topic as it was; "" to change it whatever has become of it."""
    author: str = REVIEW
    """Who makes it; what a person did, no review changes back."""
    name: str = ""
    """"" to leave it."""
    loose: bool = False
    """True if what is given the name holds loose ends: the change undoes that it became a topic."""
    brief: str | None = None
    """None to leave it, and all below down to `reviewed`."""
    summary: str = ""
    importance: float | None = None
    """0 to 1; None if it was not judged."""
    once: bool = False
    """True if it was asked once and is over."""
    reviewed: bool = True
    """True if all of the above was drawn from the topic's messages now, not taken over."""
    absorbs: str | None = None
    """Id of the topic that is merged into it."""
    absorbed_seen: str = ""
    """Fingerprint of that topic as it was."""
    takes: tuple[int, ...] = ()
    """Numbers of messages that move into it, with their whole rounds, from other topics."""
    marks: dict[Mark, bool] = {}
    """What a person settles of it by this, or leaves to reviews again."""
    restore: bool = False
    """True to take it out of the archive, or to undo that it was merged into another."""
    undoes: str = ""
    """Id of the entry of the journal that it undoes."""
    archive: str = ""
    """Month of the archive that it goes to, with what is merged into it, `2026-03`; empty if it
    stays."""
    reason: str = ""
    """Why it is merged or archived, or both."""


def fingerprint_topic(topic: Topic) -> str:
    """A digest of what a review sees of a topic."""
    return digest_text(topic.model_dump_json(include=_REVIEWED_FIELDS))


def explain_refusal(
    change: TopicChange, table: TopicTable, active: Container[str], tail: int = 1
) -> str:
    """The reason why a change cannot be made to the topics as they are now; empty if it can.

    Messages from the `tail` on are in no topic.
    """
    seen = {change.topic: change.seen} if change.topic else {}
    if change.absorbs is not None:
        seen[change.absorbs] = change.absorbed_seen
    for topic_id, mark in seen.items():
        topic = table.get(topic_id)
        if topic is None:
            return FilledText("there is no {topic}", topic=topic_id)
        if mark and fingerprint_topic(topic) != mark:
            return FilledText("{topic} has changed since", topic=topic_id)
        if topic.status not in _list_usable(change, topic_id):
            return FilledText("{topic} is {state}", topic=topic_id, state=FilledText(topic.status))
    if len(seen) < 2 and change.absorbs is not None:
        return FilledText("{topic} cannot be merged into itself", topic=change.topic)
    if change.author != REVIEW:
        return _explain_to_person(change, table, tail)
    not_dormant = [i for i in seen if get_state(table[i], active) != "dormant"]
    if not change.archive or not not_dormant:
        return ""
    return FilledText("{topic} is active", topic=not_dormant[0])


def _list_usable(change: TopicChange, topic_id: str) -> set[str]:
    if change.author == REVIEW:
        return {"open"}
    if topic_id == change.absorbs or change.takes:
        return {"open", "archived", "merged"} if change.restore else {"open", "archived"}
    if change.restore:
        return {"archived", "merged"}
    if change.archive or change.absorbs or change.marks.get("pinned"):
        return {"open"}
    return {"open", "archived", "divided"}


def _explain_to_person(change: TopicChange, table: TopicTable, tail: int) -> str:
    late = [number for number in change.takes if number >= tail]
    if late:
        return FilledText("m{number} is in no topic yet", number=min(late))
    topic = table.get(change.topic)
    if topic is not None and topic.loose and (change.absorbs or change.marks.get("pinned")):
        return FilledText(
            "{topic} holds loose ends, which belong to no topic: give it a name of its own first",
            topic=topic.id,
        )
    owner = find_owner(change.name, (t for t in table if t.status != "merged"), [change.topic])
    if not change.name or owner is None:
        return ""
    return FilledText("{topic} is called “{name}”", topic=owner.id, name=change.name)


def apply_texts(topic: Topic, change: TopicChange, table: TopicTable) -> Topic:
    """The topic, which has all its messages, with a change's texts and marks.

    A name that is taken is left out, and so is one that would replace a person's. Loose ends that a
    person gives a name are a topic like others from then on.
    """
    name = "" if find_owner(change.name, table, (topic.id, change.absorbs)) else change.name
    if change.brief is not None:
        topic = topic.described(name, change.brief).model_copy(
            update={
                "summary": change.summary,
                "importance": change.importance,
                "once": change.once,
                "reviewed": topic.content if change.reviewed else topic.reviewed,
            }
        )
    marks = {**dict.fromkeys(topic.by_hand, True), **change.marks}
    by_hand = tuple(sorted(mark for mark, holds in marks.items() if holds))
    given = {"name": name, "loose": change.loose} if name and change.author != REVIEW else {}
    return topic.model_copy(update={"by_hand": by_hand, **given})


def apply_archiving(topic: Topic, change: TopicChange, active: Container[str]) -> Topic:
    """The topic archived or restored, if the change says so.

    Raises `TransitionError` if it is not dormant; a person's change has it dormant before.
    """
    if change.restore and topic.status != "open":
        topic = apply_event(topic, "restore", active)
        topic = topic.model_copy(update={"merged_into": None})
    return mark_archived(topic, active, change.archive) if change.archive else topic


def find_month(last_at: str, now: datetime) -> str:
    """The month of the archive that a topic goes to: that of its last message, `2026-03`."""
    try:
        return datetime.fromisoformat(last_at).isoformat()[:7]
    except ValueError:
        return now.isoformat()[:7]


def describe_change(change: TopicChange, table: TopicTable) -> str:
    """A change in words for people, given the topics as they were before it."""

    def name(topic_id: str) -> str:
        topic = table.get(topic_id)
        return f"{topic_id} “{topic.name if topic else ''}”"

    named = name(change.topic)
    if change.absorbs is not None:
        other = name(change.absorbs)
        away = " and archived it" if change.archive else ""
        done = f"merged {other} into {named}{away}"
    elif change.archive:
        done = f"archived {named}"
    elif change.author == REVIEW and not change.takes:
        done = f"reviewed {named}"
    else:
        done = _describe_by_hand(change, table, named)
    by = "" if change.author == REVIEW else f"{change.author}: "
    undone = "undone: " if change.undoes else ""
    return f"{by}{undone}{done}" + (f": {change.reason}" if change.reason else "")


def _describe_by_hand(change: TopicChange, table: TopicTable, named: str) -> str:
    ends = dict.fromkeys(f"m{number}" for number in (*change.takes[:1], *change.takes[-1:]))
    ids = " to ".join(ends)
    if change.topic not in table:
        return f"split {ids} off into {change.topic} “{change.name}”"
    done = {
        f"restored {named}": change.restore,
        f"moved {ids} into {named}": change.takes,
        f"renamed {named} to “{change.name}”": change.name,
        f"pinned {named}": change.marks.get("pinned"),
        f"unpinned {named}": change.marks.get("pinned") is False,
    }
    return next((words for words, holds in done.items() if holds), f"changed {named}")


def begin_brief(messages: Iterable[StoredMessage]) -> str:
    """The brief of a topic that a person made, until a role writes one: how it begins."""
    return clip("\n".join(m.text for m in messages if m.role == "user"), _BRIEF)


class ChangeEntry(BaseModel, frozen=True):
    """An entry of the journal of changes."""

    author: str
    time: str
    """ISO 8601."""
    event: str
    """What was done, in words."""
    before: tuple[str | None, str | None]
    """Heads of the chains of topics and of their ranges before it."""
    after: tuple[str | None, str | None]
    """The same after it."""
    undoes: str = ""
    """Id of the entry that it undid."""


def find_undoable(journal: Mapping[str, ChangeEntry]) -> str:
    """Id of the newest change of a person that is not undone; "" if there is none."""
    undone = {entry.undoes for entry in journal.values()}
    own = (i for i, e in journal.items() if e.author != REVIEW and not e.undoes)
    return next((i for i in reversed(list(own)) if i not in undone), "")


def invert_topic(
    was: Topic,
    made: Topic,
    now: Topic,
    left: Sequence[int],
    change: TopicChange,
    *,
    settle: bool = False,
) -> TopicChange | None:
    """The change that undoes what another did to a topic; None if nothing is left to undo.

    What was changed once more since stays as it is.

    Args:
        was: The topic before the change.
        made: The topic after it.
        now: The topic as it is.
        left: Numbers of the messages that left it by the change.
        change: Who undoes what.
        settle: True to mark the topic as sorted by a person.
    """

    def undone(name: str) -> bool:
        before, after = getattr(was, name), getattr(made, name)
        return bool(before != after and getattr(now, name) == after)

    marks = {m: m in was.by_hand for m in {*was.by_hand} ^ {*made.by_hand}}
    restore = undone("status") and now.status != "open"
    if settle and (now.status == "open" or restore):
        marks.pop("sorted", None)
        marks |= {} if "sorted" in now.by_hand else {"sorted": True}
    if now.name != made.name:
        marks.pop("named", None)  # what it is called now, somebody else may have meant
    texts: dict[str, object] = {}
    if undone("name"):
        texts |= {"name": was.name, "loose": was.loose}
    if undone("brief"):
        kept = was.model_dump(include={"brief", "summary", "importance", "once"})
        texts |= {**kept, "reviewed": False}
    inverse = change.model_copy(
        update={
            **texts,
            "topic": was.id,
            "takes": tuple(left),
            "marks": marks,
            "restore": restore,
            "archive": was.archived if undone("status") and was.status == "archived" else "",
        }
    )
    return inverse if inverse != change.model_copy(update={"topic": was.id}) else None
