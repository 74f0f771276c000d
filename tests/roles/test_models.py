"""Opening chat models from strings."""

from __future__ import annotations

import subprocess
import sys

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_openai import ChatOpenAI
from tables import each_row

from topicloom import ConfigurationError, UnknownModelError
from topicloom.hosting import get_model_name
from topicloom.roles.models import get_window_size, open_model

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def opened(spec: str, *, base_url: str | None = None, api_key: str | None = None) -> ChatOpenAI:
    model = open_model(spec, base_url=base_url, api_key=api_key)
    assert isinstance(model, ChatOpenAI)
    return model


def key_of(model: ChatOpenAI) -> str:
    key = model.openai_api_key
    return key.get_secret_value() if key and not callable(key) else ""


def test_a_chat_model_is_returned_as_it_is() -> None:
    model = GenericFakeChatModel(messages=iter([]))
    assert open_model(model) is model


def test_a_model_of_openai_is_opened_with_its_options() -> None:
    model = open_model("openai:gpt-4o", api_key="k", timeout=7, max_retries=1)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, key_of(model)) == ("gpt-4o", "k")
    assert (model.request_timeout, model.max_retries, model.stream_usage) == (7, 1, True)


def test_a_server_of_ones_own_needs_no_key() -> None:
    model = opened("openai:org/model:8b", base_url="http://localhost:1/v1")
    assert (model.model_name, key_of(model)) == ("org/model:8b", "not-needed")
    assert model.stream_usage is True
    assert model.openai_api_base == "http://localhost:1/v1"


def test_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert key_of(opened("openai:gpt-4o")) == "not-needed"
    monkeypatch.setenv("OPENAI_API_KEY", "env")
    assert key_of(opened("openai:gpt-4o")) == "env"
    assert key_of(opened("openai:gpt-4o", api_key="own")) == "own"


@pytest.mark.parametrize("key", ["", None])
def test_a_missing_key_is_named(key: str | None) -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        open_model("openai:gpt-4o", api_key=key)


@each_row("spec", ["", "gpt-4o", "openai:", ":gpt-4o", " : "])
def test_what_names_no_model_is_shown_with_examples(spec: str) -> None:
    with pytest.raises(UnknownModelError, match="openai:gpt-5-mini") as caught:
        open_model(spec)
    assert repr(spec) in str(caught.value)


def test_other_providers_need_their_package() -> None:
    """That of Cohere is not installed here, so the message has to say what to install."""
    with pytest.raises(ConfigurationError, match=r"'cohere:command-x'.*langchain"):
        open_model("cohere:command-x")


def test_a_provider_that_langchain_does_not_know() -> None:
    pytest.importorskip("langchain")
    with pytest.raises(UnknownModelError, match=r"(?s)'nobody:gpt-4o'.*openai:gpt-5-mini"):
        open_model("nobody:gpt-4o")


def test_names_and_windows() -> None:
    model = opened("openai:gpt-4o", api_key="k")
    assert get_model_name(model) == "gpt-4o"
    assert get_window_size(model, 5) == 128_000
    unknown = opened("openai:my-own", api_key="k")
    assert get_window_size(unknown, 5) == 5
    fake = GenericFakeChatModel(messages=iter([]), profile={"max_input_tokens": 9})
    assert (get_model_name(fake), get_window_size(fake, 5)) == ("GenericFakeChatModel", 9)


@pytest.mark.slow
def test_importing_costs_no_client() -> None:
    code = "import sys, topicloom.roles.reader; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
