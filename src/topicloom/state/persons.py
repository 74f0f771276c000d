"""Who is talking: the user and the scope that a thread belongs to, and what it may see of others.

Users and scopes are told apart by their exact text: `Ann`, `ann` and `ann ` are three users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from topicloom.errors import OtherPersonError
from topicloom.state.safe_text import replace_surrogates
from topicloom.state.session import Session
from topicloom.texts import FilledText

_LONGEST = 500
"""Characters of the name of a user or a scope."""


class Person(NamedTuple):
    """A user and the scope, such as a project or a customer, that a thread is in."""

    user: str
    scope: str = ""
    """"" for none: what is said there is known to all threads of the user."""


def make_person(user: object, scope: object = "") -> Person | None:
    """The person that an application names; None if it names no user.

    Raises:
        OtherPersonError: There is a scope without a user, or a name that cannot be kept.
    """
    names = ["" if given is None else str(given) for given in (user, scope)]
    for what, name in zip(("user_id", "scope"), names, strict=True):
        blank = bool(name) and not name.strip()
        if blank or len(name) > _LONGEST or "\0" in name or replace_surrogates(name) != name:
            raise OtherPersonError(
                "{what} {name!r} cannot be used: give it at most {most} characters, not only white"
                " space, without NUL and without halves of characters",
                what=what,
                name=name[:40],
                most=_LONGEST,
            )
    if names[1] and not names[0]:
        raise OtherPersonError("scope {scope!r} needs a user: give user_id as well", scope=names[1])
    return Person(*names) if names[0] else None


def read_person(options: tuple[str, str], configurable: Mapping[str, Any]) -> Person | None:
    """The person of a run: as user and scope in its context name it, else its configuration."""
    if any(options):
        return make_person(*options)
    return make_person(configurable.get("user_id"), configurable.get("scope"))


def get_person(session: Session) -> Person | None:
    """The person that a session belongs to; None if it belongs to nobody."""
    return Person(session.user_id, session.scope) if session.user_id else None


def find_person(sessions: Iterable[Session]) -> Person | None:
    """The person of those sessions of one thread that belong to any."""
    return next(filter(None, map(get_person, sessions)), None)


def claim_session(session: Session, person: Person | None) -> Session:
    """The session as one of a person; as it is, if nobody is named or it is that person's.

    Raises:
        OtherPersonError: It belongs to another user, or is in another scope.
    """
    check_person(session, person)
    if person is None or session.user_id:
        return session
    return session.model_copy(update={"user_id": person.user, "scope": person.scope})


def check_person(session: Session, person: Person | None) -> None:
    """Raise `OtherPersonError` if a session belongs to another than the person who asks for it."""
    owner = get_person(session)
    if person is None or owner is None or owner == person:
        return
    # Whose it is, is not told: the name of a user says something already.
    what = FilledText("another user" if owner.user != person.user else "another scope")
    raise OtherPersonError(
        "thread {session!r} belongs to {what}, not to user {user!r} in scope {scope!r}: give"
        " another thread_id",
        session=session.id,
        what=what,
        user=person.user,
        scope=person.scope,
    )


def sees(scope: str, other: str) -> bool:
    """True if a thread in a scope sees what was said by its user in another one.

    It sees its own scope and what is in none; a thread in no scope sees that alone.
    """
    return other in ("", scope)
