"""Fitting messages, topics and lines into the window of a role's prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Self

from cachetools import LRUCache
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import TranscriptFormatter
from topicloom.prompts.loader import LANGUAGES, Prompts
from topicloom.prompts.wording import get_wording
from topicloom.state.calibration import SAFETY_MARGIN
from topicloom.state.fence import fence_line
from topicloom.state.language import Language
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

ChooseStart = Callable[[int, Sequence[int], Sequence[int], int], int]
"""A digest of what stands before the conversation, and the numbers, sizes and room of
`choose_start`; to how many messages are left out."""

_MIN_OLDER_TOKENS = 1_000
"""Tokens of older messages that are shown at least, if that leaves half of the room."""


def choose_start(
    numbers: Sequence[int], sizes: Sequence[int], room: int, since: int | None = None
) -> int:
    """How many leading messages to leave out so that the rest, or the newest alone, fits in tokens.

    As long as it fits, the conversation begins with message `since`, as it did last time. If it
    has to begin anew, older messages fill only a quarter of the room, so that this lasts long.
    """
    if since in numbers:
        cut = numbers.index(since)
        if sum(sizes[cut:]) <= room:
            return cut
    older = min(max(room // 4, min(_MIN_OLDER_TOKENS, room // 2)), room - sizes[-1])
    cut, left = 0, sum(sizes[:-1])
    while left > older and cut < len(numbers) - 1:
        left -= sizes[cut]
        cut += 1
    return cut


class WindowStarts:
    """Remembers with which message the conversation began in the last prompt of each window.

    If what stands before the conversation has changed, the provider's cache is lost anyway, and the
    conversation begins anew. This is kept in the process alone. Forgetting it costs a cache once.
    """

    def __init__(self, size: int = 16_384) -> None:
        """Remember at most `size` windows."""
        self._starts: LRUCache[tuple[str, str], tuple[int, int, int]] = LRUCache(size)
        """Digest of what came before, and the numbers of the first and the newest message."""
        self._lock = Lock()

    def __call__(
        self,
        window: tuple[str, str],
        before: int,
        numbers: Sequence[int],
        sizes: Sequence[int],
        room: int,
    ) -> int:
        """How many messages to leave out, remembered for the window, a session's and a topic's id.

        `before` is a digest of all that comes before the conversation; sizes and room are tokens.
        """
        if not numbers:
            return 0
        with self._lock:
            last, since, newest = self._starts.get(window, (before, None, 0))
            goes_on = last == before and newest <= numbers[-1]
            cut = choose_start(numbers, sizes, room, since if goes_on else None)
            self._starts[window] = before, numbers[cut], numbers[-1]
        return cut


RESERVE = 48
"""Tokens for the lines that say where the conversation begins and what is not shown."""
SMALLEST = 24
"""Tokens that every message is shown with at least."""
_ANSWER_ROOM = 4_000
"""Tokens kept free for an answer; at most a quarter of a small window."""
_CACHE_POINT = "topicloom_lasting"
PASSING = "topicloom_passing"
"""Marks a last message that no later prompt repeats; for `roles/prompt_caches.py` as well."""


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """The window that a role's prompt has to fit."""

    counter: TokenCounter
    limit: int
    """Tokens of the whole prompt, some thousand at least."""
    prompts: Prompts = field(default_factory=Prompts)
    """Instructions by role and language."""

    @classmethod
    def of(cls, window: int, counter: TokenCounter, prompts: Prompts) -> Self:
        """A model's window as tokens are counted, without room for an answer."""
        room = window - min(_ANSWER_ROOM, window // 4)
        return cls(counter, int(room / SAFETY_MARGIN), prompts)

    def topic_room(self) -> int:
        """Tokens that a topic may have which is read in this window, in whatever language.

        It says when a topic is divided and what its reader is shown of it: so none is ever cut. The
        conversation has a quarter. Where the instructions fill the window, the stand-in reads.
        """
        forms = ("reader_tags", "reader_json")
        texts = [
            f"{self.prompts('reader', language)}\n\n{self.prompts(form, language)}"
            for language in LANGUAGES
            for form in forms
        ]
        left = self.limit - max(measure_each(texts, self.counter)) - RESERVE
        return max(left, self.limit // 4) * 3 // 4

    def measure(self, round_: Round) -> int:
        """Tokens of a round as its reader is shown it, under a day of its own."""
        (text,) = TranscriptFormatter(self.counter, inf, LANGUAGES[0]).format_rounds([round_])
        return self.counter.message(HumanMessage(text))

    def messages(self, role: str, language: Language, *texts: str) -> list[BaseMessage]:
        """A prompt of the role's instructions and some texts, a message each."""
        return [SystemMessage(self.prompts(role, language)), *map(HumanMessage, texts)]

    def room(self, role: str, language: Language, *texts: str) -> int:
        """Tokens left beside the role's instructions and some texts."""
        return self.limit - sum(map(self.counter.text, (self.prompts(role, language), *texts)))


def topic_messages(
    messages: Sequence[StoredMessage], counter: TokenCounter, language: Language, room: int
) -> list[HumanMessage]:
    """The rounds of a topic, a message each; see `topic_texts`."""
    texts = topic_texts(messages, counter, language, room)
    return [*map(HumanMessage, texts[:-1]), *map(cache_point, texts[-1:])]


def topic_texts(
    messages: Sequence[StoredMessage], counter: TokenCounter, language: Language, room: int
) -> list[str]:
    """The rounds of a topic, a text each: whole if they fit so many tokens.

    Else long messages are shown in part: of a few, or of one round, all fit. And if that is not
    enough the oldest are left out, much at a time.
    """
    rounds = group_rounds(messages)
    texts = TranscriptFormatter(counter, inf, language).format_rounds(rounds)
    if sum(measure_each(texts, counter)) > room:
        share = room // max(min(5, len(messages)), *(len(b.messages) for b in rounds))
        cap = max(SMALLEST, share - RESERVE)
        texts = TranscriptFormatter(counter, cap, language).format_messages(messages)
        cut = count_left_out(measure_each(texts, counter), room, max(1, room // 8))
        texts = drop_leading(texts, cut, get_wording(language).missing.format(count=cut))
    return texts


def cache_point(text: str) -> HumanMessage:
    """The last message of a part that seldom changes; `roles/prompt_caches.py` reads its mark."""
    return HumanMessage(text, additional_kwargs={_CACHE_POINT: True})


def is_cache_point(message: BaseMessage) -> bool:
    """True if the message ends such a part."""
    return _CACHE_POINT in message.additional_kwargs


def recent_text(
    tail: Sequence[StoredMessage], window: PromptWindow, language: Language, room: int
) -> str:
    """The newest messages that fit some tokens."""
    counter, missing = window.counter, get_wording(language).missing
    lines = TranscriptFormatter(counter, max(SMALLEST, room // 4), language).format_messages(tail)
    cut = count_left_out([counter.text(line) + 1 for line in lines], room, 1)
    return "\n".join(drop_leading(lines, cut, missing.format(count=cut)))


def topic_listing(
    heads: Sequence[str], topics: Sequence[Topic], counter: TokenCounter, room: int
) -> str:
    """Topics, a line each; if their briefs don't fit, the beginnings of them."""
    briefs = [fence_line(t.brief) for t in topics]
    whole = "\n".join(f"{h}: {b}" if b else h for h, b in zip(heads, briefs, strict=True))
    tokens = counter.text(whole)
    if tokens <= room:
        return whole
    spare = max(0, room - sum(counter.text(h) + 4 for h in heads))
    share = spare / max(1, tokens)
    begun = [b[: int(len(b) * share)] for b in briefs]
    return "\n".join(f"{h}: {b}..." if b else h for h, b in zip(heads, begun, strict=True))


def count_left_out(sizes: Sequence[int], room: int, step: int) -> int:
    """Return how many leading items to leave out so that the rest fits.

    What is left out comes to a multiple of `step` at least, so the cut stays where it is while
    the items grow by less than a step.
    """
    over = sum(sizes) - room
    if over <= 0:
        return 0
    goal, dropped = -(-over // step) * step, 0
    for index, size in enumerate(sizes):
        if dropped >= goal:
            return index
        dropped += size
    return len(sizes)


def measure_each(texts: Sequence[str], counter: TokenCounter) -> list[int]:
    """Tokens of each text as a message."""
    return [counter.message(HumanMessage(text)) for text in texts]


def drop_leading(texts: Sequence[str], cut: int, notice: str) -> list[str]:
    """The texts after a cut, the first of them under a line that says what is missing."""
    if not cut:
        return list(texts)
    return [f"{notice}\n{texts[cut]}", *texts[cut + 1 :]] if cut < len(texts) else [notice]
