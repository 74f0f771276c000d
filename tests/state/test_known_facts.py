"""Which facts about the user a prompt shows."""

from __future__ import annotations

from topicloom.state.facts import KnownFact, choose_facts

TEA = KnownFact("2026-03-01", "Likes tea", ("r1",))
LEEDS = KnownFact("2026-03-02", "Lives in Leeds", ("r2",))
NUTS = KnownFact("2026-03-03", "Allergic to nuts")
KNOWN = {"tea": TEA, "leeds": LEEDS, "nuts": NUTS}


def choose(*branch: str, tokens: int = 1_000, most: int = 9) -> list[str]:
    return list(choose_facts(KNOWN, branch, len, tokens=tokens, most=most))


def test_all_that_fit_are_chosen_with_their_days_the_newest_last() -> None:
    days = {"tea": "2026-03-01", "leeds": "2026-03-02", "nuts": "2026-03-03"}
    assert choose_facts(KNOWN, ["r1", "r2"], len, tokens=1_000, most=9) == days


def test_the_newest_go_first_where_there_is_no_room_for_all() -> None:
    assert choose("r1", "r2", most=2) == ["leeds", "nuts"]
    assert choose("r1", "r2", tokens=len("Lives in Leeds") + len("Allergic to nuts")) == [
        "leeds",
        "nuts",
    ]
    assert choose("r1", "r2", tokens=0) == []


def test_what_was_said_on_another_branch_only_is_left_out() -> None:
    assert choose("r1") == ["tea", "nuts"]
    assert choose() == ["nuts"], "a fact without refs is of no branch"
