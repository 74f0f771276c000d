"""No key reads or changes what is another's over HTTP, nor what is another user's of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import httpx
import pytest
from endpoints import Talk, talking
from hypothesis import assume, given, settings, strategies as st

from topicloom import open_session
from topicloom.hosting import name_thread
from topicloom_app.serve.memory_routes import describe_memory

KEYS = {"a": "key of a", "a_b": "key of a_b", "b": "key of b"}
"""The first may name users; one name begins with another."""


class Person(NamedTuple):
    """Who sends requests."""

    owner: str
    user: str = ""
    scope: str = ""

    @property
    def headers(self) -> dict[str, str]:
        named = {"X-Topicloom-User": self.user, "X-Topicloom-Scope": self.scope}
        return {"x-api-key": KEYS[self.owner]} | {k: v for k, v in named.items() if v}


PERSONS = [
    *map(Person, KEYS),
    *(Person("a", user, scope) for user, scope in product(("ann", "b", "a.b"), ("", "x"))),
]
BODIES: dict[str, list[dict[str, Any]]] = {
    "make_change": [
        {"do": "rename", "topic": "t1", "name": "Seen"},
        {"do": "move", "topic": "t1", "messages": "m1"},
        {"do": "undo"},
    ],
    "set_user_timezone": [{"timezone": "Asia/Bangkok"}],
    "forget": [{"what": ["m1"]}, {"what": ["t1"], "dry_run": True}],
}
OPERATIONS = [
    (method.upper(), path, BODIES.get(operation["operationId"], [None]))
    for path, item in describe_memory()["paths"].items()
    for method, operation in item.items()
]
"""All there are, with bodies that do something."""


class Walled(NamedTuple):
    """Threads of all of them behind one endpoint."""

    talk: Talk
    names: list[str]
    """Of each one's only thread."""

    def read(self) -> list[list[str]]:
        """What every thread holds."""
        opened = [open_session(self.talk.graph, name_thread(name)) for name in self.names]
        return [[m.text for m in store.messages(session)] for session, store in opened]


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walled]:
    """Each of them has a chat `c1` with a secret."""
    with talking(tmp_path_factory.mktemp("walls"), keys=KEYS, trusted=["a"]) as talk:
        names = []
        for number, person in enumerate(PERSONS):
            said = [{"role": "user", "content": f"secret{number}。"}]
            body = {"model": "topicloom", "messages": said}
            headers = {**person.headers, "X-Chat-Id": "c1"}
            httpx.post(f"{talk.url}/chat/completions", json=body, headers=headers)
            url = f"{talk.url}/memory/threads"
            (thread,) = httpx.get(url, headers=person.headers).json()
            names.append(thread["thread"])
        yield Walled(talk, names)


@pytest.mark.slow
def test_each_has_one_thread_of_its_own(walled: Walled) -> None:
    assert len({*walled.names}) == len(PERSONS)
    assert [said[0] for said in walled.read()] == [f"secret{n}。" for n in range(len(PERSONS))]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    number=st.sampled_from(range(len(PERSONS))),
    operation=st.sampled_from(OPERATIONS),
    data=st.data(),
)
def test_nothing_of_another_is_read_or_changed(
    walled: Walled, number: int, operation: tuple[str, str, list[Any]], data: st.DataObject
) -> None:
    method, path, bodies = operation
    person, own = PERSONS[number], walled.names[number]
    others = st.sampled_from([name for name in walled.names if name != own])
    plain = st.text(st.characters(categories=("L", "N"), include_characters=".-_ "), min_size=1)
    around = st.sampled_from(["{}", " {}", "{}.side", "a.{}", "../{}", "%2e%2e%2f{}", "{}%00"])
    thread = data.draw(around).format(data.draw(others | plain))
    assume(thread not in (own, "c1"))
    assume((method, path) != ("DELETE", "/v1/memory/user"))  # that is each one's own
    before = walled.read()
    url = walled.talk.url.removesuffix("/v1")
    url += path.format(thread=thread, topic="t1", message="m1", turn=1)
    body = data.draw(st.sampled_from(bodies))
    asked = {"text": "secret"} if path.endswith("/search") else {}
    sent: Any = {"json": body} if body else {"params": asked}
    answer = httpx.request(method, url, headers=person.headers, **sent)
    for n, other in enumerate(PERSONS):
        mine = n == number or ("/user/" in path and other[:2] == person[:2])
        assert mine or f"secret{n}。" not in answer.text
    assert "{thread}" not in path or answer.status_code in (400, 404)
    assert walled.read() == before
