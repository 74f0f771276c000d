"""Measures what an application's document costs a turn.

    python lab/benchmarks/skeleton.py

Targets: a skeleton of 1,000 entities in less than 50 ms; the same input gives the same bytes. Times
are of the processor, so that what else a machine does counts less.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from topicloom import Domain, PlanRequest, TurnPlan
from topicloom.lab import (
    EmbeddedPlanner,
    SkeletonRenderer,
    apply_edits,
    build_skeleton_layer,
    is_active,
    list_events,
    parse_document,
)
from topicloom_lab.talk import document_of

ENTITIES, EVENTS, RUNS = 1_000, 20, 50


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """Median and smallest processor time of some runs, after a first one that is not counted."""
    work()
    times = []
    for _ in range(RUNS):
        began = time.thread_time()
        work()
        times.append(1_000 * (time.thread_time() - began))
    return statistics.median(times), min(times)


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    skeletons, document, plan = (
        SkeletonRenderer(Domain()),
        document_of(ENTITIES, EVENTS),
        TurnPlan(goal="Go on."),
    )
    text, _ = skeletons.render(document, plan)
    assert text == SkeletonRenderer(Domain()).render(document_of(ENTITIES, EVENTS), plan)[0]
    layer = build_skeleton_layer(text, [])
    assert layer is not None
    request = PlanRequest(
        session="s",
        query="set the thing 7 count to 3",
        tail=[],
        document=document,
        events=[e for e in list_events(document, "events") if is_active(e)],
        templates=skeletons.templates,
        previous=None,
        language="en",
    )
    planner, edits = EmbeddedPlanner(), [["INC", "item_7.count", 1], ["SET", "health", 3]]
    for what, work in (
        ("skeleton (target 50)", lambda: skeletons.render(document, plan)),
        ("what of it changed", lambda: build_skeleton_layer(text, [(1, layer)])),
        ("taking a document in", lambda: parse_document(document)),
        ("two edits", lambda: apply_edits(document, edits)),
        ("embedded planner", lambda: planner.call(request)),
    ):
        median, least = milliseconds(work)
        print(f"{what:<22} {median:6.2f} ms, at least {least:.2f}")
    print(f"{ENTITIES:,} entities, {len(text):,} characters, median of {RUNS} runs")


if __name__ == "__main__":
    main()
