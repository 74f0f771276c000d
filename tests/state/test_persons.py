"""Who a thread belongs to, and what it may see of its user's others."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.errors import OtherPersonError
from topicloom.state.persons import (
    Person,
    claim_session,
    find_person,
    get_person,
    make_person,
    read_person,
    sees,
)
from topicloom.state.session import Session

ANN = Person("ann")
SCOPES = ("", "garden", "work")
SHARED = {
    "": (True, False, False),
    "garden": (True, True, False),
    "work": (True, False, True),
}
"""What a thread in a scope sees of each scope of its user: see `docs/guides/persons.md`."""


@each_row("scope", SCOPES)
def test_scopes_see_what_the_table_says(scope: str) -> None:
    assert tuple(sees(scope, other) for other in SCOPES) == SHARED[scope]


def test_a_thread_belongs_to_the_first_user_that_is_named() -> None:
    session = Session(id="t")
    assert claim_session(session, None) is session
    owned = claim_session(session, Person("ann", "work"))
    assert get_person(owned) == ("ann", "work")
    assert claim_session(owned, None) is owned
    assert claim_session(owned, Person("ann", "work")) is owned
    assert find_person([session, owned]) == ("ann", "work")
    assert find_person([session]) is None


@each_row(
    "other", [Person("bob", "work"), Person("ann"), Person("ann", "Work"), Person("ann ", "work")]
)
def test_another_is_refused_and_not_told_whose_it_is(other: Person) -> None:
    owned = claim_session(Session(id="t"), Person("ann", "work"))
    with pytest.raises(OtherPersonError, match="belongs to another") as raised:
        claim_session(owned, other)
    assert (other.user == "ann") == ("another scope" in str(raised.value))
    if other.user == "bob":
        assert "ann" not in str(raised.value)


@each_row(
    ("user", "scope"),
    [("", "work"), (None, "work"), ("a\0", ""), ("a", "\ud800"), ("a" * 501, "")],
)
def test_names_that_cannot_be_used(user: str | None, scope: str) -> None:
    with pytest.raises(OtherPersonError):
        make_person(user, scope)


def test_the_context_goes_before_the_configuration() -> None:
    given = {"user_id": 7, "scope": "work"}
    assert read_person(("", ""), given) == ("7", "work")
    assert read_person(("ann", ""), given) == ANN
    assert read_person(("", ""), {"thread_id": "t"}) is None
    assert read_person(("", ""), {"user_id": None}) is None


@given(st.text(st.sampled_from(" \t\n\u00a0\u3000"), min_size=1))
def test_a_blank_name_is_nobodys_and_never_everybodys(blank: str) -> None:
    for names in ((blank, ""), (blank, "garden"), ("ann", blank)):
        with pytest.raises(OtherPersonError, match="white space"):
            make_person(*names)
    assert make_person("") is None
    with pytest.raises(OtherPersonError):
        make_person("", "garden")
