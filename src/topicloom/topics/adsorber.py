"""The semantic boundary adsorber: does a message continue the open topic, or begin another?

A funnel: a message that says nothing by itself is adsorbed; a detector rates the others; those
that it leaves in the grey zone are put to an arbiter before a split, all questions at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from topicloom.prompts.loader import Cues
from topicloom.state.language import CJK_RUN, detect_language
from topicloom.state.rounds import LOOK_BACK, Round, group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.boundary_detector import BoundaryDetector, Rating
from topicloom.topics.boundary_policy import AdsorberPolicy, BoundaryQuestion

_RULED, _AS_IT_CAME = 6.0, 1.5
"""Log odds by a ruling, and by what was seen as a message came or of a filler."""

Zone = Literal["filler", "adsorb", "grey", "split"]
"""The outcome of the funnel for a message."""
FindReturn = Callable[[str], str | None]
"""Gives the id of the known topic that a text returns to; None for none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The adsorber's own judgement of a message."""

    zone: Zone
    continues: float
    """Probability that the message continues the open topic; 1 for fillers."""
    returns: str | None = None
    """Id of the known topic that a message returns to which does not continue the open one."""

    @property
    def opens(self) -> bool:
        """True if the message begins a topic; in the grey zone the likelier answer."""
        return self.continues < 0.5 if self.zone == "grey" else self.zone == "split"


class Adsorber:
    """Tells where topics begin: the funnel, over any detector."""

    def __init__(self, detector: BoundaryDetector, fillers: Cues, policy: AdsorberPolicy) -> None:
        self._detector = detector
        self._fillers = fillers
        self._policy = policy

    def judge(
        self, rounds: Sequence[Round], message: StoredMessage, find_return: FindReturn | None = None
    ) -> Verdict:
        """Judge a user message as it arrives, by the newest rounds, oldest first.

        `find_return` asks the kernels of the known topics, where a topic begins.
        """
        # Fillers leave the centroid of the open topic alone.
        telling = self._telling(rounds)
        round_ = Round((message,), rounds[-1].reply if rounds else "")
        if self._is_filler(round_) or not telling:
            return Verdict("filler", 1.0)
        rating = self._detector.rate(telling, round_)
        verdict = Verdict(self._zone(rating), rating.continues)
        if not verdict.opens or find_return is None:
            return verdict
        return replace(verdict, returns=find_return(round_.rewritten_query))

    def mark_beginnings(
        self,
        new: Sequence[StoredMessage],
        recent: Sequence[StoredMessage],
        find_return: FindReturn | None = None,
    ) -> tuple[list[StoredMessage], Verdict]:
        """Mark the new messages with which a topic begins; `recent` are those before them.

        Imported chats are not judged: each is one topic, so its beginning is known. Also returns
        the verdict on the last message of the user.
        """
        marked: list[StoredMessage] = []
        verdict = Verdict("split", 0.0)
        for message in new:
            if message.role == "user" and message.chat is None and not message.begins:
                before = group_rounds([*recent, *marked][-LOOK_BACK:])
                verdict = self.judge(before, message, find_return)
                message = message.model_copy(update={"opens": verdict.opens})
            marked.append(message)
        return marked, verdict

    def expect(self, messages: Sequence[StoredMessage]) -> None:
        """Make ready to judge what comes after these messages, which takes time now, not then."""
        self._detector.expect(messages)

    def doubts(
        self, before: Sequence[Round], rounds: Sequence[Round]
    ) -> dict[int, BoundaryQuestion]:
        """Questions to an arbiter before some rounds are split; `before` are those before them.

        There is one for each round that may or may not begin a topic, by the number of its first
        message; at most `questions`, those nearest to the middle of the zone.
        """
        ratings = self._ratings(rounds)
        earlier = self._telling(before)
        if earlier and self._telling(rounds[:1]):
            # Looking back, the first round has nothing before it: it is rated as it came.
            ratings[0] = self._detector.rate(earlier, rounds[0])
        middle = (self._policy.low + self._policy.high) / 2
        rated = ((one, r) for one, r in zip(rounds, ratings, strict=True) if r is not None)
        grey = [(one, r) for one, r in rated if self._zone(r) == "grey" and not one.begins]
        asked = sorted(grey, key=lambda pair: abs(pair[1].score - middle))
        telling = [*earlier, *self._telling(rounds)]
        found = {one.first: (one, r.continues) for one, r in asked[: self._policy.questions]}
        return {first: self._question(telling, *found[first]) for first in sorted(found)}

    def continuity(self, rounds: Sequence[Round]) -> list[float]:
        """Log odds that each round goes on with the one before it, when the tail is split.

        A filler does, and the first round of an imported conversation does not. The first round of
        all is rated as it came, and a ruling decides where there is one.
        """
        return [
            _odds_of(rating, one, first=place == 0)
            for place, (rating, one) in enumerate(zip(self._ratings(rounds), rounds, strict=True))
        ]

    def _ratings(self, rounds: Sequence[Round]) -> list[Rating | None]:
        """Ratings of rounds, looking back; None for the first and for fillers."""
        fillers = {one.first for one in rounds if self._is_filler(one)}
        found = self._detector.look_back(rounds, fillers)
        unrated = fillers | {one.first for one in rounds[:1]}
        return [None if one.first in unrated else r for one, r in zip(rounds, found, strict=True)]

    def _telling(self, rounds: Sequence[Round]) -> list[Round]:
        return [one for one in rounds if not self._is_filler(one)]

    def _zone(self, rating: Rating) -> Zone:
        if rating.score > self._policy.high:
            return "adsorb"
        return "split" if rating.score < self._policy.low else "grey"

    def _question(self, telling: Sequence[Round], round_: Round, prior: float) -> BoundaryQuestion:
        earlier = [one.rewritten_query for one in telling if one.first < round_.first]
        return BoundaryQuestion(
            summary="\n".join(earlier[-self._policy.memory :]),
            request=round_.rewritten_query,
            reply=round_.context,
            prior=prior,
            language=detect_language([round_.rewritten_query]),
        )

    def _is_filler(self, round_: Round) -> bool:
        text = round_.rewritten_query
        return _tokens(text) < self._policy.filler_tokens or self._fillers.is_all_of(text)


def _odds_of(rating: Rating | None, round_: Round, *, first: bool) -> float:
    if round_.ruling is not None or round_.begins:
        return _RULED if round_.ruling == "continues" else -_RULED
    if rating is None:
        return -_AS_IT_CAME if first and round_.opens else _AS_IT_CAME
    share = min(max(rating.continues, 1e-3), 1 - 1e-3)
    return math.log(share / (1 - share))


def _tokens(text: str) -> int:
    """Words and CJK characters, about what tokenizers make of a short text."""
    return sum(map(len, CJK_RUN.findall(text))) + len(CJK_RUN.sub(" ", text).split())
