"""Which facts about the user a prompt shows."""

from __future__ import annotations

from topicloom.state.facts import KnownFact, choose_facts

TEA = KnownFact("2026-03-01", "Likes tea")
LEEDS = KnownFact("2026-03-02", "Lives in Leeds")
NUTS = KnownFact("2026-03-03", "Allergic to nuts")
KNOWN = {"tea": TEA, "leeds": LEEDS, "nuts": NUTS}


def choose(tokens: int = 1_000, most: int = 9) -> list[str]:
    return list(choose_facts(KNOWN, len, tokens=tokens, most=most))


def test_all_that_fit_are_chosen_with_their_days_the_newest_last() -> None:
    days = {"tea": "2026-03-01", "leeds": "2026-03-02", "nuts": "2026-03-03"}
    assert choose_facts(KNOWN, len, tokens=1_000, most=9) == days


def test_the_newest_go_first_where_there_is_no_room_for_all() -> None:
    assert choose(most=2) == ["leeds", "nuts"]
    assert choose(tokens=len("Lives in Leeds") + len("Allergic to nuts")) == ["leeds", "nuts"]
    assert choose(tokens=0) == []
