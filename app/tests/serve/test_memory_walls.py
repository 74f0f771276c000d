"""No key reads or changes what is another's over HTTP, nor what is another user's of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from endpoints import Talk, talking
from hypothesis import HealthCheck, given, settings, strategies as st

from topicloom import SessionStore, open_session
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
    "forget": [{"what": ["m1"]}, {"what": ["t1"], "dry_run": True}],
}
OPERATIONS = [
    (method.upper(), path, BODIES.get(operation["operationId"], [None]))
    for path, item in describe_memory()["paths"].items()
    for method, operation in item.items()
]
"""All there are, with bodies that do something."""


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A chat `c1` of each of them, with a secret."""
    folder: Path = tmp_path_factory.mktemp("walls")
    with talking(folder, keys=KEYS, trusted=["a"]) as opened:
        for number, person in enumerate(PERSONS):
            said = [{"role": "user", "content": f"secret{number}。"}]
            body = {"model": "topicloom", "messages": said}
            headers = {**person.headers, "X-Chat-Id": "c1"}
            httpx.post(f"{opened.url}/chat/completions", json=body, headers=headers)
        yield opened


def read_all(talk: Talk) -> dict[str, list[str]]:
    """What every session holds."""
    found = {}
    for number, person in enumerate(PERSONS):
        url = f"{talk.url}/memory/threads"
        (thread,) = httpx.get(url, headers=person.headers).json()
        session, store = open_session(talk.graph, name_thread(thread["thread"]))
        assert isinstance(store, SessionStore)
        found[thread["thread"]] = [m.text for m in store.messages(session)]
        assert found[thread["thread"]][0] == f"secret{number}。"
    return found


def test_each_has_one_thread_of_its_own(talk: Talk) -> None:
    assert len(read_all(talk)) == len(PERSONS)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    person=st.sampled_from(PERSONS),
    operation=st.sampled_from(OPERATIONS),
    data=st.data(),
)
def test_nothing_of_another_is_read_or_changed(
    talk: Talk, person: Person, operation: tuple[str, str, list[Any]], data: st.DataObject
) -> None:
    method, path, bodies = operation
    before = read_all(talk)
    own = next(name for name, said in before.items() if said[0] == secret_of(person))
    others = [*(before.keys() - {own})]
    plain = st.text(st.characters(categories=("L", "N"), include_characters=".-_ "), min_size=1)
    names = st.sampled_from(others) | plain.filter(lambda name: name != "c1")
    wrapped = st.sampled_from(["{}", " {}", "{}.side", "a.{}", "../{}", "%2e%2e%2f{}", "{}%00"])
    thread = data.draw(wrapped).format(data.draw(names))
    if thread == own or (method, path) == ("DELETE", "/v1/memory/user"):
        return
    place = path.format(thread=thread, topic="t1", message="m1", turn=1)
    asked = {"text": "secret"} if path.endswith("/search") else {}
    body = data.draw(st.sampled_from(bodies))
    url = talk.url.removesuffix("/v1") + place
    sent: Any = {"json": body} if body else {"params": asked}
    answer = httpx.request(method, url, headers=person.headers, **sent)
    said = answer.text
    for number, other in enumerate(PERSONS):
        seen = other == person or ("/user/" in path and other[:2] == person[:2])
        assert seen or f"secret{number}。" not in said
    if "{thread}" in path:
        assert answer.status_code in (400, 404)
    assert read_all(talk) == before


def secret_of(person: Person) -> str:
    return f"secret{PERSONS.index(person)}。"
