"""Daily limits: roles rest before replies are refused, whatever was used by whom."""

from __future__ import annotations

from hypothesis import given, strategies as st

from topicloom import DailyLimits
from topicloom.state.limits import REPLY, add_up

ROLES = st.sampled_from(["reader", "splitter", "brief", REPLY])
USED = st.dictionaries(ROLES, st.floats(0, 1_000), max_size=4)


@given(st.floats(0.1, 1.0), st.floats(1, 1_000), USED, ROLES)
def test_whoever_refuses_the_reply_has_all_roles_rest(
    rest_at: float, cap: float, used: dict[str, float], role: str
) -> None:
    limits = DailyLimits(rest_at=rest_at)
    if limits.is_used_up(REPLY, cap, used):
        assert limits.is_used_up(role, cap, used)


@given(st.floats(0.01, 1.0), st.floats(1, 1_000), USED, st.floats(0, 1_000))
def test_a_share_of_its_own_has_a_role_rest_alone(
    share: float, cap: float, used: dict[str, float], more: float
) -> None:
    limits, plain = DailyLimits(roles={"reader": share}), DailyLimits()
    used["reader"] = share * cap + more
    assert limits.is_used_up("reader", cap, used)
    for role in ("splitter", REPLY):
        assert limits.is_used_up(role, cap, used) == plain.is_used_up(role, cap, used)


@given(st.lists(USED, max_size=4))
def test_nothing_is_lost_when_counts_are_added(counts: list[dict[str, float]]) -> None:
    together = sum(sum(count.values()) for count in counts)
    assert abs(sum(add_up(counts).values()) - together) < 1e-6
