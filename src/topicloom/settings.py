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
from topicloom.state.zones import Timezone
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
    """The strong model (reply, split), such as `openai:gpt-5`; None for the embedded roles."""
    cheap_model: str | None = None
    """The cheap model (readers, router, briefs); None for the strong one."""
    role_models: dict[str, str] = {}
    """A model of its own for a role, or `embedded` for none; `arbiter` works only if it is given
    one, and `rewriter` if it is or `cheap_model` is set. The arbiter may be a cross-encoder:
    `rerank:BAAI/bge-reranker-v2-m3`, or `rerank:` and a folder."""
    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, for all models `openai:...`."""
    api_key: str | None = Field(default=None, repr=False)
    """Key for `base_url`; OpenAI itself takes `OPENAI_API_KEY`."""
    role_base_urls: dict[str, str] = {}
    """Base URL of a role's own, by role; `cheap` is for all that the cheap model plays."""
    role_api_keys: dict[str, str] = Field(default={}, repr=False)
    """Keys for these base URLs, by role; `api_key` is not sent there."""
    prices: dict[str, tuple[Price, Price, Price]] = {}
    """Prices of a million tokens in any currency, by model or by role: of the prompt, of its cached
    part, and of the answer: `{"gpt-5-mini": [0.25, 0.025, 2]}`. Receipts then show costs."""
    limits: Group[DailyLimits] = _default(DailyLimits)
    """What models may use in a day: `TOPICLOOM_LIMITS__USER=200000` tokens."""
    language: LanguageChoice = "auto"
    """Language of prompts and commands; `auto`: the conversation's, and the terminal's."""
    prompts: Path | None = None
    """A folder of your own prompts, such as `en/reader.md`; all others are ours."""

    timezone: Timezone = ""
    """Where users are whose turns do not say it, such as `Europe/Paris`: days are those of its
    clocks. "" for the zone of this machine."""
    window: int | None = Field(default=None, ge=1_000)
    """Main window in tokens; None for the model's own (`profile`), or 32,000."""
    topic_window: int = Field(default=64_000, ge=1_000)
    """Window of a reader in tokens, if what its model takes is not smaller."""
    topic_share: float = Field(default=1.0, gt=0, le=1)
    """A topic is divided when it fills more than this share of its reader's prompt."""
    recall_share: float = Field(default=0.08, gt=0, lt=1)
    """Share of the main window that one turn's recall may add."""
    recall_tokens: int | None = Field(default=None, ge=1)
    """The same in tokens; goes before `recall_share`."""
    recall_least: float = Field(default=0.05, ge=0, le=1)
    """How sure recall has to be to quote an original: the probability that the user's message needs
    any memory, times the weight of the original (1 for the best one). 0 to quote as much as there
    is room for, whatever was said."""
    readers: ReadersSay = "decide"
    """Weight of what a model's readers say. `decide`: they choose what is quoted, and the index
    stands in for those that fail. `advise`, for small local models: the index fills half of the
    room as if there were no model, and the readers the rest."""
    layout: LayoutName = "ledger"
    """Where recall stands in the main prompt: behind the messages that called for it, or, as the
    design paper has it, before all messages, topic by topic with name, file and brief."""
    beginning: Literal["whole", "segments"] | None = None
    """What is shown until the first split: the whole conversation, or its first and newest rounds
    with summaries of the segments between. None for segments if no model replies, else whole."""
    newest_rounds: int = Field(default=5, ge=1)
    """Rounds at the end that stay word for word behind the segments."""
    visible_messages: int = Field(default=4, ge=1)
    """Newest messages that stay in the `messages` channel after a turn, in whole rounds."""
    trace_steps: bool = False
    """True to have traces show the state before and after each step of a turn. False for the names
    and times of steps, and the calls of models."""

    on_conflict: Literal["merge", "raise", "branch"] = "merge"
    """What a turn does if another writer's turn ended while it went on. `merge`: it comes behind
    the other. `raise`: it raises `ConflictError`. `branch`: it stays on a branch of its own. Its
    receipt says which."""
    on_edit: Literal["hide", "purge", "ignore"] = "hide"
    """What happens to messages that the application removes from the `messages` channel, or changes
    there. `hide`: they are out of view, and stay in storage until a purge. `purge`: they are purged
    at the end of the turn. `ignore`: they stay in view, and a changed one counts as new."""
    facts: int = Field(default=12, ge=0, le=100)
    """Newest facts about the user in the main prompt, where reflection keeps some in the graph's
    store; chosen anew at each split. 0 for none."""

    across_threads: Literal["off", "facts", "all"] = "facts"
    """What a thread knows of its user's other threads: nothing (`off`), `facts` with the user's own
    words, or messages too (`all`). It needs a graph with a store."""
    across_share: float = Field(default=0.25, gt=0, le=1)
    """Share of a turn's recall that other threads of the user may have, at most."""

    split: Group[SplitPolicy] = _default(SplitPolicy)
    """Thresholds of a split."""
    activation: Group[ActivationPolicy] = _default(ActivationPolicy)
    """Thresholds and counts of activation."""
    adsorber: Group[AdsorberPolicy] = _default(AdsorberPolicy)
    """The funnel of the boundary adsorber; `{"preset": "spec"}` for those of the design."""
    embedder: str | None = None
    """The encoder that messages are searched with: None for the one that ships, `hashing`, or a
    model of sentence-transformers such as `BAAI/bge-m3`, by name or folder. In Python,
    `build_session_graph(embedder=...)` takes any LangChain `Embeddings` as well."""
    background: bool = True
    """True if `topicloom chat`, `serve`, `ui` and a LangGraph server review sessions that are due,
    and reflect upon them, beside the turns; False to leave that to `topicloom review`, `topicloom
    reflect` and schedulers of your own."""
    reflection: Group[ReflectionPolicy] = _default(ReflectionPolicy)
    """Timing of reflection, where a scheduler runs beside the graph."""
    retention: Group[RetentionPolicy] = _default(RetentionPolicy)
    """How many days messages, receipts and facts are kept: `TOPICLOOM_RETENTION__MESSAGES=90`."""
    review: Group[ReviewPolicy] = _default(ReviewPolicy)
    """Thresholds of archiving and merging in a review."""
    search_rounds: int = Field(default=2, ge=0)
    """How often one turn may call `activate_topic`."""
    index_topics: int = Field(default=1_000, ge=1)
    """Topics that the role that splits is shown at most, as many as a third of its window holds:
    briefs are shown in part before a topic is left out."""
    hold_characters: int = Field(default=200, ge=0)
    """Characters of a reply held back until it is clear that it is not a call for more topics."""

    role_seconds: float = Field(default=60.0, gt=0)
    """Deadline of every inner role."""
    reply_seconds: float = Field(default=120.0, gt=0)
    """Time-out of the main model's requests, up to the next part of a reply."""
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
    """URL of a database of PostgreSQL that holds sessions and checkpoints in the place of the
    folder: for `topicloom serve`, and for the graph of `langgraph.json`."""
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
