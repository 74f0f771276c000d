"""The headers that say who is talking: for keys that may say so, and for nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from endpoints import Talk, ask, open_client, talking

from topicloom import ConfigurationError, FileStorage
from topicloom.hosting import name_thread
from topicloom_app.serve.app import check_trusted

ANN: Any = {"X-Topicloom-User": "ann", "X-Topicloom-Scope": "garden"}
BOB: Any = {"X-Topicloom-User": "bob"}
NOBODY: Any = {}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    keys = {"app": "none", "phone": "other"}
    with talking(tmp_path, keys=keys, trusted=["app"]) as opened:
        yield opened


def persons(talk: Talk) -> set[tuple[str, str]]:
    names = FileStorage(talk.folder).sessions()
    found = (talk.graph.get_state(name_thread(name)).values["session"] for name in names)
    return {(one.get("user_id", ""), one.get("scope", "")) for one in found}


@pytest.mark.slow
def test_chats_of_one_name_are_of_two_users(talk: Talk) -> None:
    chat = {"chat_id": "c1"}
    ask(talk.client, [], "茶：一", metadata=chat, extra_headers=ANN)
    ask(talk.client, [], "山：一", metadata=chat, extra_headers=BOB)
    ask(talk.client, [], "海：一", metadata=chat)
    assert persons(talk) == {("app.ann", "garden"), ("app.bob", ""), ("", "")}


@pytest.mark.parametrize("headers", [ANN, BOB, {"X-Topicloom-Scope": "garden"}])
def test_a_key_that_may_not_say_so_is_refused(talk: Talk, headers: Any) -> None:
    with (
        open_client(talk.url, "other") as client,
        pytest.raises(openai.PermissionDeniedError, match="who is talking"),
    ):
        ask(client, [], "茶：一", extra_headers=headers)
    assert not FileStorage(talk.folder).sessions()


def test_a_scope_needs_a_user(talk: Talk) -> None:
    with pytest.raises(openai.BadRequestError, match="needs a user"):
        ask(talk.client, [], "茶：一", extra_headers={"X-Topicloom-Scope": "garden"})


def test_without_keys_nobody_says_who_is_talking(tmp_path: Path) -> None:
    body = {"model": "topicloom", "messages": [{"role": "user", "content": "茶"}]}
    with talking(tmp_path) as talk:
        refused = httpx.post(f"{talk.url}/chat/completions", json=body, headers=BOB)
    assert refused.status_code == 403


@pytest.mark.slow
def test_an_answer_of_another_user_is_not_found(talk: Talk) -> None:
    """Neither to go on from, nor as a reference to what it says."""
    client: Any = talk.client.responses
    first = client.create(model="topicloom", input="茶：一", extra_headers=ANN)
    for given in ({"previous_response_id": first.id}, {}):
        reference: Any = {"type": "item_reference", "id": first.output[0].id}
        items = "茶：二" if given else [reference, {"role": "user", "content": "茶：二"}]
        for headers in (BOB, NOBODY):
            with pytest.raises(openai.NotFoundError):
                client.create(model="topicloom", input=items, extra_headers=headers, **given)
    client.create(
        model="topicloom", input="茶：二", previous_response_id=first.id, extra_headers=ANN
    )
    assert persons(talk) == {("app.ann", "garden")}


def test_what_is_not_kept_is_nobodys(talk: Talk) -> None:
    talk.client.responses.create(model="topicloom", input="茶", store=False, extra_headers=ANN)
    assert not FileStorage(talk.folder).sessions()


def test_a_key_that_is_trusted_has_to_be_there() -> None:
    check_trusted(["app"], {"app": "secret"})
    check_trusted([""], {"": "secret"})
    with pytest.raises(ConfigurationError, match="'web' is trusted"):
        check_trusted(["web"], {"app": "secret"})
