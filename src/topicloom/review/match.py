"""match: pairs of topics that seem to be the same, and their nearness to the discussion."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.step import Update, dumped, node
from topicloom.review.channels import ReviewState
from topicloom.review.decisions import (
    Assessment,
    TopicPair,
    TopicStats,
    pair_topics,
    select_likeliest,
    select_merges,
)
from topicloom.review.merger import MERGER, MergeRequest
from topicloom.review.reviewer import ReviewRequest
from topicloom.review.session_client import ReviewDeps
from topicloom.review.survey import ask_reviewer
from topicloom.roles.calls import ask_all
from topicloom.search.centroids import ReviewCentroids, compute_centroids, sum_vectors
from topicloom.search.embedder import FixedEmbedder
from topicloom.state.activation import transfer_activation
from topicloom.state.lifecycle import merge_in_order
from topicloom.state.receipt import Call
from topicloom.state.session import Session
from topicloom.state.topics import Topic

_NEWEST = 24
"""Newest messages that stand for the discussion."""
_YES = 0.5
"""Probability from which two topics are the same."""


def match_topics(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that proposes pairs by the index and asks a role whether they are the same.

    A pair is proposed only if one of both was changed since the last review; the likeliest few are
    asked about, however unlike they are in words: the role decides.
    """

    def step(state: ReviewState) -> Step[Update]:
        session = Session.model_validate(state["session"])
        store = deps.open_store(session)
        looks = [TopicStats.model_validate(row) for row in state["looks"]]
        table = store.topic_table(session)
        # Archived topics count too: without them, archiving one would make others less alike.
        # Open ones that cannot be read were reported when they were assessed.
        embedder = FixedEmbedder(deps.shared.embedder)
        # Where the encoder is down, vectors are zero: nothing can be said of these topics then.
        sums = sum_vectors(store, session, embedder, list(table))
        sums = {i: (row, count) for i, (row, count) in sums.items() if row.any()}
        held = {look.topic: table[look.topic] for look in looks if look.topic in sums}
        if not held:
            return {"pairs": [], "near": {}}
        newest = store.messages(session, session.count - _NEWEST + 1)
        centroids = compute_centroids(sums, embedder, newest)
        calls: list[Call] = []
        wanted = _propose_pairs(deps, held, centroids, set(state["due"]))
        fresh = {row["topic"]: Assessment.model_validate(row) for row in state["assessed"]}
        pairs = yield from _confirm_pairs(deps, session, held, wanted, fresh, calls)
        pairs = yield from _describe_pairs(deps, session, held, pairs, looks, calls)
        active = session.active
        for pair in pairs:
            (one, count), (other, more) = sums[pair.kept], sums.pop(pair.other)
            sums[pair.kept] = one + other, count + more
            active = transfer_activation(active, pair.other, [pair.kept])
        after = compute_centroids(sums, embedder, newest)
        compared = [i for i in held if i in sums] if after.now.any() else []
        return {
            "pairs": [pair.model_dump(mode="json") for pair in pairs],
            "near": {i: round(after.measure_nearness(i, list(active)), 4) for i in compared},
            "calls": dumped(calls),
        }

    return node(step, "match")


def _propose_pairs(
    deps: ReviewDeps, held: Mapping[str, Topic], centroids: ReviewCentroids, due: set[str]
) -> list[TopicPair]:
    pairs = (
        pair_topics(held[one], held[other], centroids.compare(one, other), deps.shared.topic_tokens)
        for one, other in itertools.combinations(held, 2)
        if not due.isdisjoint((one, other))
    )
    return select_likeliest(filter(None, pairs), deps.policy)


def _confirm_pairs(
    deps: ReviewDeps,
    session: Session,
    held: Mapping[str, Topic],
    pairs: Sequence[TopicPair],
    fresh: Mapping[str, Assessment],
    calls: list[Call],
) -> Step[list[TopicPair]]:
    """The pairs that the merger takes for the same; where it fails, they are not."""
    if not pairs:
        return []
    now = {i: _add_assessment(held[i], fresh.get(i)) for p in pairs for i in (p.kept, p.other)}
    requests = [
        MergeRequest(session.id, (now[p.kept], now[p.other]), p.likeness, session.language)
        for p in pairs
    ]
    topics = [p.kept for p in pairs]
    answers = yield from ask_all("merger", deps.shared.roles[MERGER], requests, topics)
    calls += [call for _, call in answers]
    said = [answer is not None and answer >= _YES for answer, _ in answers]
    agreed = [p.model_copy(update={"same": s}) for p, s in zip(pairs, said, strict=True)]
    return select_merges(agreed, deps.policy)


def _describe_pairs(
    deps: ReviewDeps,
    session: Session,
    held: Mapping[str, Topic],
    pairs: Sequence[TopicPair],
    looks: Sequence[TopicStats],
    calls: list[Call],
) -> Step[list[TopicPair]]:
    """The pairs that can be read, with an assessment of both together."""
    store = deps.open_store(session)
    uses = {look.topic: look.uses for look in looks}
    described = []
    for pair in pairs:
        topic = held[pair.kept]
        try:
            own = (held[i] for i in (pair.kept, pair.other))
            both = merge_in_order(*(store.topic_messages(session, topic) for topic in own))
        except StorageError:
            continue  # damaged since it was assessed; the next review reports it
        used = uses[pair.kept] + uses[pair.other]
        request = ReviewRequest(session.id, topic, both, session.language, used)
        together = yield from ask_reviewer(deps.shared.roles, request, calls)
        described.append(pair.model_copy(update={"together": together}))
    return described


def _add_assessment(topic: Topic, found: Assessment | None) -> Topic:
    if found is None:
        return topic
    said = {"name": found.name or topic.name, "brief": found.brief, "summary": found.summary}
    return topic.model_copy(update=said)
