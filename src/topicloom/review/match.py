"""Pairs of topics that seem to be the same, and the nearness of topics to the discussion."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.review.decisions import (
    Assessment,
    TopicPair,
    pair_topics,
    select_likeliest,
    select_merges,
)
from topicloom.review.merger import MERGER, MergeRequest
from topicloom.review.reviewer import ReviewRequest
from topicloom.review.survey import SurveyedSession
from topicloom.roles.calls import ask_all
from topicloom.search.centroids import ReviewCentroids, compute_centroids, sum_vectors
from topicloom.search.embedder import FixedEmbedder
from topicloom.state.activation import transfer_activation
from topicloom.state.lifecycle import merge_in_order
from topicloom.state.topics import Topic

_NEWEST = 24
"""Newest messages that stand for the discussion."""
_YES = 0.5
"""Probability from which two topics are the same."""


def match_topics(
    survey: SurveyedSession, assessed: Mapping[str, Assessment]
) -> Step[tuple[list[TopicPair], dict[str, float]]]:
    """Within a step: find pairs by the index, and ask a role whether they are the same.

    A pair is proposed only if one of both was changed since the last review; the likeliest few are
    asked about, however unlike they are in words: the role decides.

    Returns:
        The pairs, and how near each topic is to the discussion once they are merged.
    """
    session, store, table = survey.session, survey.store, survey.table
    # Archived topics count too: without them, archiving one would make others less alike.
    # Open ones that cannot be read were reported when they were assessed.
    embedder = FixedEmbedder(survey.deps.embedder)
    # Where the encoder is down, vectors are zero: nothing can be said of these topics then.
    sums = sum_vectors(store, session, embedder, list(table))
    sums = {i: (row, count) for i, (row, count) in sums.items() if row.any()}
    held = {i: table[i] for i in survey.stats if i in sums}
    if not held:
        return [], {}
    newest = store.messages(session, session.count - _NEWEST + 1)
    centroids = compute_centroids(sums, embedder, newest)
    wanted = _propose_pairs(survey, held, centroids)
    pairs = yield from _confirm_pairs(survey, held, wanted, assessed)
    pairs = yield from _describe_pairs(survey, held, pairs)
    active = session.active
    for pair in pairs:
        (one, count), (other, more) = sums[pair.kept], sums.pop(pair.other)
        sums[pair.kept] = one + other, count + more
        active = transfer_activation(active, pair.other, [pair.kept])
    after = compute_centroids(sums, embedder, newest)
    compared = [i for i in held if i in sums] if after.now.any() else []
    return pairs, {i: round(after.measure_nearness(i, list(active)), 4) for i in compared}


def _propose_pairs(
    survey: SurveyedSession, held: Mapping[str, Topic], centroids: ReviewCentroids
) -> list[TopicPair]:
    due, limit = set(survey.due), survey.deps.rooms.topic
    pairs = (
        pair_topics(held[one], held[other], centroids.compare(one, other), limit)
        for one, other in itertools.combinations(held, 2)
        if not due.isdisjoint((one, other))
    )
    return select_likeliest(filter(None, pairs), survey.deps.settings.review)


def _confirm_pairs(
    survey: SurveyedSession,
    held: Mapping[str, Topic],
    pairs: Sequence[TopicPair],
    assessed: Mapping[str, Assessment],
) -> Step[list[TopicPair]]:
    """The pairs that the merger takes for the same; where it fails, they are not."""
    session = survey.session
    now = {i: _add_assessment(held[i], assessed.get(i)) for p in pairs for i in (p.kept, p.other)}
    requests = [
        MergeRequest(session.id, (now[p.kept], now[p.other]), p.likeness, session.language)
        for p in pairs
    ]
    topics = [p.kept for p in pairs]
    answers = yield from ask_all("merger", survey.deps.roles[MERGER], requests, topics)
    survey.calls.extend(call for _, call in answers)
    said = [answer is not None and answer >= _YES for answer, _ in answers]
    agreed = [p.model_copy(update={"same": s}) for p, s in zip(pairs, said, strict=True)]
    return select_merges(agreed, survey.deps.settings.review)


def _describe_pairs(
    survey: SurveyedSession, held: Mapping[str, Topic], pairs: Sequence[TopicPair]
) -> Step[list[TopicPair]]:
    """The pairs that can be read, with an assessment of both together."""
    session, read = survey.session, dict[str, TopicPair]()
    requests: list[ReviewRequest] = []
    for pair in pairs:
        try:
            own = (held[i] for i in (pair.kept, pair.other))
            both = merge_in_order(*(survey.store.topic_messages(session, topic) for topic in own))
        except StorageError:
            continue  # damaged since it was assessed; the next review reports it
        used = survey.stats[pair.kept].uses + survey.stats[pair.other].uses
        topic = held[pair.kept]
        requests.append(ReviewRequest(session.id, topic, both, session.language, used))
        read[pair.kept] = pair
    found = yield from survey.ask_reviewers(requests)
    together = zip(read.values(), found, strict=True)
    return [pair.model_copy(update={"together": answer}) for pair, answer in together]


def _add_assessment(topic: Topic, found: Assessment | None) -> Topic:
    if found is None:
        return topic
    said = {"name": found.name or topic.name, "brief": found.brief, "summary": found.summary}
    return topic.model_copy(update=said)
