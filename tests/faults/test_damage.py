"""Whatever is damaged of a session, what follows is an answer or an error that says so.

All of it: `python tests/faults damage`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from faults.campaign import Campaign, Case, problems_of
from faults.damage import damage_cases

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cases() -> Iterator[list[Case]]:
    with damage_cases(places=3) as made:
        yield made


def run(cases: list[Case], sample: int | None = None) -> Campaign:
    campaign = Campaign(random.randrange(10**6))
    campaign.run(campaign.sample(cases, sample))
    assert campaign.done
    assert not list(problems_of(campaign)), f"seed {campaign.seed}"
    return campaign


def test_every_file_damaged_in_some_ways(cases: list[Case]) -> None:
    run(cases, 2)


def test_vectors_are_a_cache(cases: list[Case]) -> None:
    telling = {"noise", "nan", "dimension-0", "dimension-64", "dimension-2147483647"}
    vectors = [case for case in cases if ".bin/" in case.name]
    campaign = run([case for case in vectors if case.name.rpartition("/")[2] in telling])
    assert len(campaign.done) == len(telling)
    assert not any(figures["refused"] for figures in campaign.figures().values())


def test_a_newer_format_is_refused(cases: list[Case]) -> None:
    campaign = run([case for case in cases if case.name.endswith("session.json/format-99")])
    (figures,) = campaign.figures().values()
    assert (figures["refused"], figures["answered"]) == (1, 0)
