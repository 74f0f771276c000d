"""The receipt that every turn leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from topicloom.state.layers import CuratedItem
from topicloom.state.recall import TopicNote, parse_message_number
from topicloom.state.session import ReadingEffect, Search, StepTime
from topicloom.state.thread_quotes import ThreadQuote


class Call(BaseModel, frozen=True):
    """One call of a role."""

    role: str
    model: str = "embedded"
    """The model that answered."""
    topic: str | None = None
    """For readers, the topic; None for a call that reads several."""
    began: float = 0.0
    """When it began, in seconds since the epoch."""
    seconds: float = 0.0
    input_tokens: int = 0
    """Prompt tokens: reported by the provider, else estimated; 0 for embedded roles."""
    output_tokens: int = 0
    """Answer tokens, likewise."""
    cached_tokens: int = 0
    """Prompt tokens that the provider says came from its cache."""
    repeated: float | None = None
    """Share of the prompt that repeats the beginning of an earlier one of the same window."""
    failure: str | None = None
    """Why it contributed nothing: a timeout, an error, an unusable answer."""
    skipped: bool = False
    """True if it was not made, as the turn had waited long enough, or as its role rests after it
    was late; `failure` says which. A receipt has it in `unasked` alone."""
    remarks: tuple[str, ...] = ()
    """What had to be repaired, such as ids that are not in the topic."""


def list_unasked(calls: Iterable[Call]) -> dict[str, str]:
    """The roles of the calls that were not made, and why the first one was not."""
    skipped = (c for c in calls if c.skipped)
    return {c.role: c.failure or "" for c in reversed(list(skipped))}


Price = Annotated[float, Field(ge=0)]
Prices = Mapping[str, tuple[Price, Price, Price]]
"""Of a million tokens of the prompt, of what of it comes from the provider's cache, and of the
answer; by role, or by model, with its provider or without."""


def find_price(role: str, model: str, prices: Prices) -> tuple[float, float, float] | None:
    """The price of a role or a model, with its provider or without; None if there is none."""
    by_model = (found for name, found in prices.items() if model in (name, name.partition(":")[2]))
    return prices.get(role) or next(by_model, None)


def price_call(call: Call, prices: Prices) -> float | None:
    """What a call cost, in the currency of the prices; None where there is none for it."""
    price = find_price(call.role, call.model, prices)
    if price is None:
        return None
    tokens = (call.input_tokens - call.cached_tokens, call.cached_tokens, call.output_tokens)
    return sum(each * count for each, count in zip(price, tokens, strict=True)) / 1e6


class PlannedTurn(BaseModel, frozen=True, extra="allow"):
    """What a turn was planned to be. It keeps all fields of the plan, as the domain wrote them."""

    kind: str = "narrative"
    """`state_edit` if the message only wants the document changed, else `narrative`."""
    focus: str | None = None
    """Anchor of the active event that the turn is about."""
    goal: str = ""
    """What the reply is to achieve, in a sentence."""


class Receipt(BaseModel, frozen=True):
    """The account of a turn. Streamed in `custom` mode and kept in the turn log."""

    turn: int
    """Number of the turn, from 1."""
    user: str
    """Short id of the message that was answered."""
    started: str
    """ISO 8601."""
    seconds: float
    """Wall time from `ingest` to `finalize`."""
    scores: dict[str, float]
    """Relevance by topic, of those that were read, whole or in part."""
    quoted: tuple[TopicNote, ...] = ()
    """What was quoted, best topic first."""
    other_threads: tuple[ThreadQuote, ...] = ()
    """What was quoted of other threads of the user: where it is, not what it says."""
    curated: tuple[CuratedItem, ...] = ()
    """What a curation picked, best first, where the application has a domain."""
    crowded_out: tuple[str, ...] = ()
    """Short ids that models which read topics wanted quoted, and for which there was no room."""
    reading: ReadingEffect | None = None
    """What models that read topics changed in what was quoted; None if none read. Their calls say
    what they cost: `reading_tokens` adds them up."""
    idle: bool = False
    """True if the message needed nothing from earlier messages, so that nothing was looked for."""
    about: dict[str, float] = {}
    """Topics that the message is about, and how likely each is, best first: what is recalled of
    them comes earlier. Only those that are not unlikely; empty if it is `idle`."""
    view: int = 0
    """Number of the first message that the prompt showed as it was said."""
    noted: int = 0
    """Number of the message behind which the first note in the prompt stood; 0 if there is none."""
    roster: str | None = None
    """Head of the chain of topics after the turn."""
    active: tuple[str, ...] = ()
    """Topics active after the turn, by average relevance."""
    activated: tuple[str, ...] = ()
    """Topics activated in it."""
    deactivated: tuple[str, ...] = ()
    """Topics deactivated in it."""
    sections: dict[str, int] = {}
    """Tokens of the main prompt by section: system, notes, tail; skeleton and curated, if any."""
    window: int = 0
    """Size of the main window in tokens."""
    split: tuple[str, ...] = ()
    """Topics that messages moved into, if the tail was split."""
    searches: tuple[Search, ...] = ()
    """Searches through all topics: for an amnesia cue, or asked for by the model."""
    abandoned: int = 0
    """Replies thrown away because more topics were asked for."""
    calls: tuple[Call, ...] = ()
    """Every call of a role, in order."""
    steps: tuple[StepTime, ...] = ()
    """The steps of the turn before its end, in order: name, when it began, seconds."""
    unasked: dict[str, str] = {}
    """Roles that were not asked in this turn, and why: the turn had waited long enough, or the role
    rests as it was late. What stands in for a role answered instead."""
    limits: dict[str, float] = {}
    """Share of each daily limit that is used after the turn, 1 for all of it: of the `session`, the
    `user`, the `account` and the `process`, as far as there are limits."""
    plan: PlannedTurn | None = None
    """What the turn was planned to be, where the application has a domain."""
    edits: tuple[tuple[Any, ...], ...] = ()
    """Edits of the application's document that were made."""
    edit_errors: tuple[str, ...] = ()
    """What was wrong with edits that were not."""
    events: tuple[str, ...] = ()
    """What else happened, in words: what was split, notes dropped, damage found in storage."""

    @property
    def filled(self) -> float:
        """The share of the main window that the prompt took; 0 if the turn had none."""
        return sum(self.sections.values()) / self.window if self.window else 0.0

    @property
    def reading_tokens(self) -> int:
        """Tokens of the prompts and answers of all models that read topics."""
        return sum(c.input_tokens + c.output_tokens for c in self.calls if c.role == "reader")

    @property
    def failures(self) -> tuple[Call, ...]:
        """Calls that contributed nothing."""
        return tuple(c for c in self.calls if c.failure)


def list_quoted(receipt: Receipt, earlier: Iterable[Receipt]) -> list[str]:
    """Short ids of the messages that are quoted in a turn's prompt.

    What is quoted is not quoted again while it stands there: after the turn's own quotes come those
    of the notes of earlier turns.

    Args:
        receipt: Of the turn.
        earlier: Receipts of turns before it.
    """
    standing = (r for r in earlier if 0 < receipt.noted <= parse_message_number(r.user))
    notes = (note for r in (receipt, *standing) for note in r.quoted)
    return list(dict.fromkeys(quote for note in notes for quote in note.quotes))
