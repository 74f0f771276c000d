"""The collaborators of a session graph, made once from the settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool as as_tool

from topicloom.context.prefix import PrefixMeter
from topicloom.context.segments import ContextWindowPolicy, SegmentLayout, SummaryManager
from topicloom.context.token_count import TokenCounter
from topicloom.context.tokens import CachedTokenCounter, choose_counter
from topicloom.context.window import MainWindow
from topicloom.domain.edit import EDIT_STATE, EditState
from topicloom.errors import ConfigurationError
from topicloom.graph.keys import load_keys
from topicloom.graph.parts import GraphParts, MemoryOptions
from topicloom.nodes.activate_topic import ACTIVATE_TOPIC, ActivateTopic, make_tool
from topicloom.nodes.deps import Deps
from topicloom.nodes.user_knowledge import UserKnowledge
from topicloom.nodes.workspace import Workspaces
from topicloom.prompts.loader import Prompts, load_cues
from topicloom.reflection.scheduler import read_system_clock
from topicloom.roles.arbiter import ARBITER
from topicloom.roles.base import RoleName
from topicloom.roles.brief import summarize_by_extracts
from topicloom.roles.choice import (
    EMBEDDED,
    ChatOptions,
    ModelSpec,
    RoleModels,
    choose_roles,
    embedded_roles,
)
from topicloom.roles.models import (
    NO_KEY,
    find_provider,
    get_model_name,
    get_window_size,
    open_model,
)
from topicloom.roles.registry import ROLES, Roles, check_names, spec_of
from topicloom.roles.responder import RESPONDER
from topicloom.roles.rooms import Rooms
from topicloom.roles.servers import Server
from topicloom.roles.spending import Spending
from topicloom.roles.waits import Waits
from topicloom.search.embedder import Embedder
from topicloom.search.encoders import default_embedder, open_embedder
from topicloom.settings import Settings
from topicloom.state.channels import TurnOptions
from topicloom.state.zones import place_in_zone
from topicloom.storage.files import FileStorage
from topicloom.telemetry.report import Telemetry
from topicloom.topics.adsorber import Adsorber
from topicloom.topics.boundary_detector import BoundaryDetector, CosineDetector, TrainedDetector
from topicloom.topics.boundary_model import load_boundary_model
from topicloom.topics.boundary_policy import AdsorberPolicy
from topicloom.topics.session_index import SessionIndex

DEFAULT_WINDOW = 32_000
"""Tokens of the main window where neither the settings nor the model name any."""
_EXTRACT = 200
"""Tokens of an extract that stands for a segment of five to eight rounds."""


def make_deps(parts: GraphParts) -> Deps:
    """Make the collaborators of a graph.

    Raises `ConfigurationError` if a model cannot be opened or a tool has the name of ours.
    """
    settings = parts.settings or Settings()
    clock = parts.clock or read_system_clock
    if settings.timezone:
        clock = partial(_read_in_zone, clock, settings.timezone)
    embedder = open_embedder(settings.embedder if parts.embedder is None else parts.embedder)
    meter, spending = PrefixMeter(), Spending(settings.limits, settings.prices, clock)
    roles, window = _play_roles(parts, settings, embedder, meter, spending)
    telemetry = Telemetry(settings.telemetry, _find_providers(parts, settings))
    storage = parts.storage or FileStorage(
        settings.folder, fsync=settings.fsync, topic_files=settings.topic_files
    )
    workspaces = Workspaces(
        None if storage == "store" else storage,
        lambda log: SessionIndex(embedder, log, window.most_recall, settings.recall_least),
        open_at_once=settings.open_sessions,
        keys=load_keys(settings),
    )
    return Deps(
        settings=settings,
        roles=replace(roles, telemetry=telemetry),
        embedder=embedder,
        window=window,
        rooms=Rooms(roles, window, settings.topic_window, settings.topic_share),
        workspaces=workspaces,
        user=UserKnowledge(workspaces, embedder, load_cues("past"), clock, settings.across_threads),
        adsorber=open_adsorber(choose_zone(settings.adsorber, roles), embedder),
        amnesia=load_cues("amnesia", settings.amnesia_cues),
        meter=meter,
        clock=clock,
        waits=Waits(settings.role_seconds),
        telemetry=telemetry,
        spending=spending,
    )


def _find_providers(parts: GraphParts, settings: Settings) -> dict[str, str]:
    """The providers of the chat models of a graph, by the names that receipts have."""
    models = choose_models(settings, parts.model, parts.cheap_model, parts.role_models)
    found = {}
    for model in (models.strong, models.cheap, *models.by_role.values()):
        if isinstance(model, str):
            provider, _, name = model.strip().partition(":")
            chat = bool(name) and provider != "rerank"
        else:
            name, chat = get_model_name(model), isinstance(model, Runnable)
        if chat:
            found[name] = find_provider(model)
    return found


def _read_in_zone(clock: Callable[[], datetime], zone: str) -> datetime:
    return place_in_zone(clock(), zone)


def open_roles(**options: Unpack[MemoryOptions]) -> Roles:
    """The roles as a graph of these options plays them, to be asked beside it.

        reflect_beside(..., roles=open_roles(cheap_model="openai:gpt-5-mini"))

    Without a model in the options or the settings, they are embedded.

    Raises:
        ConfigurationError: A model cannot be opened, or a setting cannot be used.
    """
    return make_deps(GraphParts(**options)).roles


def vary_deps(deps: Deps, parts: GraphParts, options: TurnOptions) -> Deps:
    """The collaborators for a run with models or a window of its own: roles and window are other
    ones, and all else is shared.
    """
    settings = deps.settings.model_copy(update={"window": options.window or deps.settings.window})
    own = replace(
        parts,
        model=options.model or parts.model,
        cheap_model=options.cheap_model or parts.cheap_model,
        roles=None if options.model or options.cheap_model else parts.roles,
    )
    roles, window = _play_roles(own, settings, deps.embedder, deps.meter, deps.spending)
    deps.telemetry.providers.update(_find_providers(own, settings))
    rooms = Rooms(roles, window, settings.topic_window, settings.topic_share)
    return replace(deps, settings=settings, roles=roles, window=window, rooms=rooms)


def _play_roles(
    parts: GraphParts,
    settings: Settings,
    embedder: Embedder,
    meter: PrefixMeter,
    spending: Spending,
) -> tuple[Roles, MainWindow]:
    """The roles, with what models play of them, and the window of the main model."""
    models = choose_models(settings, parts.model, parts.cheap_model, parts.role_models)
    check_names(models.by_role)
    main, known = models.of("responder"), DEFAULT_WINDOW
    roles, domain = parts.roles, parts.domain is not None
    if roles is None and main is not None:
        known = get_window_size(open_role_model(settings, models, "responder", main), known)
    # What roles that models play have in common.
    chat = ChatOptions(
        meter=meter,
        window=settings.window or known,
        reader_window=settings.topic_window,
        deadline=settings.role_seconds,
        prompts=Prompts.of(settings.prompts),
        reply_tokens=settings.reply_tokens,
        spending=spending,
    )
    if roles is None:
        open_for = partial(open_role_model, settings, models)
        stand_ins = embedded_roles(embedder)
        roles = choose_roles(models, stand_ins, open_for, chat, domain=domain)
    _check_prices(spending, roles)
    counter = CachedTokenCounter(
        parts.counter or choose_counter(get_model_name(models.of("responder") or ""))
    )
    server: Server | None = getattr(roles.get(RESPONDER), "server", None)
    window = MainWindow(
        largest=chat.window,
        most_recall=settings.recall_tokens or round(settings.recall_share * chat.window),
        counter=counter,
        order=settings.layout,
        tools=_check_tools(parts.tools, {ACTIVATE_TOPIC, *([EDIT_STATE] if domain else [])}),
        search=make_tool(ACTIVATE_TOPIC, ActivateTopic),
        instructions=parts.instructions,
        prompts=chat.prompts,
        edit=make_tool(EDIT_STATE, EditState) if domain else None,
        beginning=_make_beginning(settings, roles, embedder, counter),
        context=lambda: server.context if server else None,
        media=lambda: server.takes_media if server else True,
    )
    return roles, window


def _check_prices(spending: Spending, roles: Roles) -> None:
    """Raise `ConfigurationError` if a limit of money meets a model that has no price."""
    for name in ROLES if spending.limits.unit == "money" else ():
        model = getattr(roles.get(spec_of(name)), "model", EMBEDDED)
        if model != EMBEDDED:
            spending.check_price(name, model)


def _make_beginning(
    settings: Settings, roles: Roles, embedder: Embedder, counter: TokenCounter
) -> SegmentLayout | None:
    # An embedded responder quotes what it sees: extracts give it something to quote.
    default = "segments" if roles.by_index(RESPONDER) else "whole"
    if (settings.beginning or default) == "whole":
        return None
    extracts = summarize_by_extracts(embedder, counter.text, _EXTRACT)
    policy = ContextWindowPolicy(last=settings.newest_rounds)
    return SegmentLayout(counter, SummaryManager(extracts), policy)


_ASKED_LOW = 0.05
"""The lower end of the grey zone where an arbiter decides in it. Most steps of one task that share
no words lie under the default, where nobody would be asked (docs/research/boundaries.md)."""


def choose_zone(policy: AdsorberPolicy, roles: Roles) -> AdsorberPolicy:
    """The adsorber's settings, with a wider grey zone where there is an arbiter, if none is set."""
    given = policy.preset == "spec" or "low" in policy.model_fields_set
    if given or roles.get(ARBITER) is None or policy.low < _ASKED_LOW:
        return policy
    return policy.model_copy(update={"low": _ASKED_LOW})


def open_adsorber(policy: AdsorberPolicy, embedder: Embedder) -> Adsorber:
    """The adsorber of a policy; `embedder` serves screening by cosines alone."""
    trained = TrainedDetector(load_boundary_model(), default_embedder(), policy)
    detector: BoundaryDetector = trained
    if policy.screening == "cosine":
        detector = CosineDetector(embedder, policy, trained)
    return Adsorber(detector, load_cues("fillers"), policy)


def choose_models(
    settings: Settings,
    model: ModelSpec | None = None,
    cheap_model: ModelSpec | None = None,
    role_models: Mapping[RoleName, ModelSpec] | None = None,
) -> RoleModels:
    """Models by role: what is given goes before the settings."""
    return RoleModels(
        strong=model or settings.model,
        cheap=cheap_model or settings.cheap_model,
        by_role={**settings.role_models, **(role_models or {})},
    )


def open_role_model(
    settings: Settings, models: RoleModels, role: RoleName, model: ModelSpec
) -> BaseChatModel:
    """The model of a role, at the server of the role, of the cheap model, or of all.

    That of all speaks OpenAI's protocol, and no other provider is sent there. No server is sent
    the key of another.
    """
    url, key = settings.base_url, settings.api_key
    if isinstance(model, str) and not model.strip().startswith("openai:"):
        url, key = None, None
    cheap = model == models.cheap and (role in models.by_role or spec_of(role).model == "cheap")
    names = (role, "cheap") if cheap else (role,)
    own = next((name for name in names if settings.role_base_urls.get(name)), None)
    if own is not None:
        url, key = settings.role_base_urls[own], settings.role_api_keys.get(own) or NO_KEY
    seconds = settings.reply_seconds if role == "responder" else settings.role_seconds
    retries = settings.max_retries
    return open_model(model, base_url=url, api_key=key, timeout=seconds, max_retries=retries)


def _check_tools(
    tools: Sequence[BaseTool | Callable[..., object]], ours: Collection[str]
) -> tuple[BaseTool, ...]:
    made = tuple(t if isinstance(t, BaseTool) else as_tool(t) for t in tools)
    for name in (t.name for t in made if t.name in ours):
        raise ConfigurationError("topicloom has its own tool {name!r}: rename yours", name=name)
    return made
