"""Settings of a session graph; every one can be set as `TOPICLOOM_<NAME>`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from topicloom.errors import ConfigurationError, TopicLoomWarning, suggest
from topicloom.prompts.loader import Prompts
from topicloom.reflection.due import ReflectionPolicy
from topicloom.review.decisions import ReviewPolicy
from topicloom.roles.registry import check_names
from topicloom.state.activation import ActivationPolicy
from topicloom.state.language import LanguageChoice
from topicloom.state.limits import DailyLimits
from topicloom.state.quoting import ReadersSay
from topicloom.state.recall import LayoutName
from topicloom.state.receipt import Price
from topicloom.state.retention import RetentionPolicy
from topicloom.state.splitting import SplitPolicy
from topicloom.state.superseding import OnEdit
from topicloom.state.zones import Timezone
from topicloom.telemetry.report import TelemetryLevel
from topicloom.texts import FilledText
from topicloom.topics.boundary_policy import AdsorberPolicy

P = TypeVar("P")
_PREFIX = "TOPICLOOM_"
_KEYS = frozenset({"serve_keys", "serve_origins", "ui_key"})
"""Variables of `topicloom serve` and `topicloom ui`: keys are no settings."""

if TYPE_CHECKING:

    class Group(Generic[P]):
        """A group of settings: given as it is or as a dict, and read as it is."""

        def __get__(self, settings: object, kind: type | None = None) -> P: ...
        def __set__(self, settings: object, given: P | Mapping[str, Any]) -> None: ...

else:
    Group = Annotated[P, "group"]


def _default(group: type[BaseModel]) -> Any:
    return group()


class Settings(BaseSettings):
    """Everything that can be tuned without touching code.

    Nested settings are set with two underscores: `TOPICLOOM_ACTIVATION__FLOOR=5`. A value that
    cannot be used raises `ConfigurationError`. A misspelt variable raises a warning.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid"
    )
    if not TYPE_CHECKING:

        def __init__(self, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise ConfigurationError(_describe(error, given)) from None
            except SettingsError as error:
                raise ConfigurationError(
                    "a {prefix} variable cannot be used: {error}", prefix=_PREFIX, error=error
                ) from error
            _check_variables(os.environ)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # Files are not asked for: no setting comes from one, and to look takes as long again.
        return init_settings, env_settings

    model: str | None = None
    """The strong model: it replies and splits. For example `openai:gpt-5`. None for no model."""
    cheap_model: str | None = None
    """The cheap model: it reads topics, routes and writes briefs. None for the strong one."""
    role_models: dict[str, str] = {}
    """Gives a role a model of its own, or none (`embedded`). `arbiter` works only if it has a model
    here, `rewriter` only if it has one or `cheap_model` is set. The arbiter may be a cross-encoder:
    `rerank:BAAI/bge-reranker-v2-m3`, or `rerank:` and a folder."""
    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, for all models `openai:...`."""
    api_key: str | None = Field(default=None, repr=False)
    """Key for `base_url`; OpenAI itself takes `OPENAI_API_KEY`."""
    role_base_urls: dict[str, str] = {}
    """Gives a role a server of its own. `cheap` stands for all roles of the cheap model."""
    role_api_keys: dict[str, str] = Field(default={}, repr=False)
    """Keys for these servers, by role; `api_key` is not sent there."""
    prices: dict[str, tuple[Price, Price, Price]] = {}
    """Prices of a million tokens in any currency, by model or by role: prompt, cached part of the
    prompt, answer. With `{"gpt-5-mini": [0.25, 0.025, 2]}` receipts show costs."""
    limits: Group[DailyLimits] = _default(DailyLimits)
    """What models may use in a day: `TOPICLOOM_LIMITS__USER=200000` tokens."""
    language: LanguageChoice = "auto"
    """Language of prompts and commands. `auto` takes that of the conversation and of the
    terminal."""
    prompts: Path | None = None
    """A folder of your own prompts, such as `en/reader.md`; all others are ours."""

    timezone: Timezone = ""
    """The time zone of users, such as `Europe/Paris`, if their turns name none. "" for the zone of
    this machine."""
    window: int | None = Field(default=None, ge=1_000)
    """Main window in tokens; None for the model's own (`profile`), or 32,000."""
    topic_window: int = Field(default=64_000, ge=1_000)
    """Window of a reader in tokens; the model's own if that is smaller."""
    topic_share: float = Field(default=1.0, gt=0, le=1)
    """A topic is divided when it fills more than this share of its reader's prompt."""
    recall_share: float = Field(default=0.08, gt=0, lt=1)
    """Share of the main window that one turn's recall may add."""
    recall_tokens: int | None = Field(default=None, ge=1)
    """The same in tokens; takes precedence over `recall_share`."""
    recall_least: float = Field(default=0.05, ge=0, le=1)
    """Least worth of a quote. The worth is the probability that the user's message needs memory,
    times the weight of the quote (1 for the best one). 0 to quote as much as there is room for."""
    readers: ReadersSay = "decide"
    """How far a model's readers are trusted. `decide`: they choose the quotes, and the index
    replaces those that fail. `advise`, for small local models: the index fills half of the room,
    the readers the rest."""
    layout: LayoutName = "ledger"
    """Where quotes stand in the main prompt. `ledger`: behind the message that called for them.
    `spec`: before all messages, topic by topic, as in the design paper."""
    beginning: Literal["whole", "segments"] | None = None
    """What is shown until the first split. `whole`: the conversation. `segments`: its first and
    newest rounds, and summaries of what is between. None for `whole` with a model, `segments`
    without."""
    newest_rounds: int = Field(default=5, ge=1)
    """Rounds at the end that stay word for word behind the segments."""
    visible_messages: int = Field(default=4, ge=1)
    """Newest messages that stay in the `messages` channel after a turn, in whole rounds."""
    trace_steps: bool = False
    """True if traces show the state before and after each step. False if they show only the steps,
    their times, and the calls of models."""
    telemetry: TelemetryLevel = "numbers"
    """What OpenTelemetry is told of each turn, if your process has set it up. `numbers`: durations,
    tokens, scores, names and ids. `contents`: also what was asked, replied and quoted, which no
    purge removes where you sent it. `off`: nothing."""

    on_conflict: Literal["merge", "raise", "branch"] = "merge"
    """What a turn does if another writer's turn ended meanwhile. `merge`: it is placed after the
    other. `raise`: it raises `ConflictError`. `branch`: it stays on a branch of its own. The
    receipt says which."""
    on_edit: OnEdit = "hide"
    """What happens to a message that the application removes from `messages` or changes there.
    `hide`: it is out of view, and stored until a purge. `purge`: it is purged at the end of the
    turn. `ignore`: it stays in view, and a changed one counts as new."""
    facts: int = Field(default=12, ge=0, le=100)
    """How many of the newest facts about the user the main prompt shows. They are chosen anew at
    each split. 0 for none."""

    across_threads: Literal["off", "facts", "all"] = "facts"
    """What a thread knows of its user's other threads: nothing (`off`), `facts` with the user's own
    words, or messages too (`all`). It needs a graph with a store."""
    across_share: float = Field(default=0.25, gt=0, le=1)
    """Share of a turn's recall that the user's other threads may fill."""

    split: Group[SplitPolicy] = _default(SplitPolicy)
    """Thresholds of a split."""
    activation: Group[ActivationPolicy] = _default(ActivationPolicy)
    """Thresholds and counts of activation."""
    adsorber: Group[AdsorberPolicy] = _default(AdsorberPolicy)
    """The funnel of the boundary adsorber; `{"preset": "spec"}` for those of the design."""
    embedder: str | None = None
    """The encoder of the search: None for the one that ships, `hashing`, or a model of
    sentence-transformers such as `BAAI/bge-m3`, by name or folder. In Python,
    `build_session_graph(embedder=...)` takes any LangChain `Embeddings` as well."""
    background: bool = True
    """True if `topicloom chat`, `serve`, `ui` and a LangGraph server review sessions and reflect
    upon them beside the turns. False to leave that to `topicloom review`, `topicloom reflect` and
    schedulers of your own."""
    reflection: Group[ReflectionPolicy] = _default(ReflectionPolicy)
    """Timing of reflection, where a scheduler runs beside the graph."""
    retention: Group[RetentionPolicy] = _default(RetentionPolicy)
    """How many days messages, receipts and facts are kept: `TOPICLOOM_RETENTION__MESSAGES=90`."""
    review: Group[ReviewPolicy] = _default(ReviewPolicy)
    """Thresholds of archiving and merging in a review."""
    search_rounds: int = Field(default=2, ge=0)
    """How often one turn may call `activate_topic`."""
    index_topics: int = Field(default=1_000, ge=1)
    """Topics that the splitter is shown at most. They have a third of its window; briefs are cut
    before a topic is left out."""
    hold_characters: int = Field(default=200, ge=0)
    """Characters of a reply that are held back, because it may turn out to be a call for topics."""

    role_seconds: float = Field(default=60.0, gt=0)
    """Seconds that a role other than the reply may take."""
    reply_seconds: float = Field(default=120.0, gt=0)
    """Seconds that the main model may take for the next part of a reply."""
    reply_deadline: float = Field(default=600.0, gt=0)
    """Seconds after which a reply that still goes on is cut."""
    max_retries: int = Field(default=2, ge=0)
    """Retries of a model's client on 429 and 5xx."""
    reply_tokens: int | None = Field(default=None, ge=1)
    """Tokens of a reply at most; None for what the model's server has set."""
    reply_attempts: int = Field(default=2, ge=1)
    """Attempts at the reply, each with the client's retries."""

    folder: Path | None = None
    """Folder of the sessions; the user's data folder if none is given."""
    open_sessions: int = Field(default=64, ge=1)
    """Sessions that a process keeps in memory; others are read from storage when needed."""
    postgres: str | None = Field(default=None, repr=False)
    """URL of a PostgreSQL database that holds sessions and checkpoints instead of the folder, for
    `topicloom serve` and the graph of `langgraph.json`."""
    encryption_key: str | None = Field(default=None, repr=False)
    """Master key that what is stored is encrypted with, from `topicloom key new`. Of several,
    separated by commas, the first one writes and all of them read."""
    encryption_key_file: Path | None = None
    """File with these keys instead, a line each."""
    fsync: bool = True
    """True if appends wait for the disk."""
    topic_files: bool = True
    """True to keep a copy of each topic in the folder, for people to read."""
    amnesia_cues: tuple[str, ...] = ()
    """Further phrases by which the user says that something was forgotten."""

    @field_validator("role_models", "role_base_urls", "role_api_keys")
    @classmethod
    def _check_roles(cls, named: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        check_names([n for n in named if n != "cheap" or info.field_name == "role_models"])
        return named

    @field_validator("prompts")
    @classmethod
    def _check_prompts(cls, folder: Path | None) -> Path | None:
        Prompts.of(folder)
        return folder


def _describe(error: ValidationError, given: Collection[str]) -> str:
    """The first thing that is wrong with settings, in one sentence."""
    problem = error.errors()[0]
    place = list(map(str, problem["loc"]))
    code = not place or place[0] in given
    name = ".".join(place) if code else _PREFIX + "__".join(place).upper()
    if problem["type"] != "extra_forbidden":
        ours = problem["type"] == "value_error"
        reason = str(problem["ctx"]["error"]) if ours else problem["msg"]
        seen = "" if ours else FilledText(", not {value!r}", value=problem["input"])
        unusable = "{name} cannot be used: {reason}{seen}"
        return FilledText(unusable, name=name, reason=reason, seen=seen)
    group: Any = Settings
    for part in place[:-1]:
        group = group.model_fields[part].annotation
    return _deny(name, suggest(place[-1], group.model_fields))


def _deny(name: str, meant: str) -> str:
    return FilledText("there is no setting {name}{meant}", name=name, meant=meant)


def _check_variables(names: Collection[str]) -> None:
    """Warn of variables that resemble a setting and are none."""
    for name in names:
        field = name.removeprefix(_PREFIX).partition("__")[0].lower()
        known = {*Settings.model_fields, *_KEYS}
        if name.startswith(_PREFIX) and field not in known and (meant := suggest(field, known)):
            warnings.warn(_deny(name, meant), TopicLoomWarning, stacklevel=3)
