"""Models that fail in any way fail no turn but by their own reply, and leave no secret behind.

All of it: `python tests/faults http` and `python tests/faults canary`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from faults.campaign import Campaign, Case, problems_of
from faults.http import canary_cases, http_cases

pytestmark = pytest.mark.long


def run(cases: Sequence[Case]) -> None:
    campaign = Campaign(random.randrange(10**6))
    campaign.run(campaign.sample(cases, 1))
    assert campaign.done
    assert not list(problems_of(campaign)), f"seed {campaign.seed}"


def test_faults_of_all_inner_roles_and_of_the_main_model() -> None:
    with http_cases(turns=3, only=frozenset({"inner", "responder"})) as cases:
        run(cases)


def test_nothing_is_left_of_a_secret_after_a_purge() -> None:
    with canary_cases(turns=2) as cases:
        run(cases)
