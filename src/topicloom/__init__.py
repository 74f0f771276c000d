"""One chat session that never ends: topic windows behind a single conversation, on LangGraph.

All that applications use is here and in `topicloom.testing`. The folders below are internal: what
is in them may move or change with every release. A name loads what it needs when it is first used.

A session
    The graph, what can be tuned, and what a turn takes.
    build_session_graph SessionGraph Settings TurnOptions SessionState SessionInput Domain ModelSpec
    TopicChange TokenCounter
Policies
    The groups of settings.
    SplitPolicy ActivationPolicy AdsorberPolicy ReviewPolicy ReflectionPolicy
What is stored
    A session at rest: its messages, topics, notes, receipts.
    get_session open_session Session SessionStore PurgePlan StoredMessage Topic Round Note TopicNote
    Receipt Call JournalEntry
Storages
    Where sessions live.
    Storage FileStorage StoreStorage
Reviews
    Looking back at a session, and its topics beside other memories.
    review_session areview_session build_review_graph ReviewOptions ReviewReport forget_topics
    MemoryFiles MemoryReport
Reflection
    Durable facts about the user.
    reflect_beside reflect_once ReflectionOptions ReflectionResult ReflectionScheduler
    ReflectionReport run_in_thread Fact
Roles
    What a model does here: of each role its description, Protocol, request and answer. An own one
    takes its place by `roles.replace(READER, MyReader())`.
    Roles embedded_roles Role LocalRole RoleName RoleSpec Answer Usage
    RESPONDER Responder ReplyRequest
    SPLITTER Splitter SplitRequest Assignment
    READER Reader ReadRequest Reading Quote
    ROUTER Router RouteRequest Route
    BRIEF BriefWriter BriefRequest Brief
    REWRITER Rewriter RewriteRequest
    ARBITER Arbiter BoundaryQuestion
    PLANNER Planner PlanRequest TurnPlan
    SELECTOR Selector SelectRequest Selection
    REVIEWER Reviewer ReviewRequest Assessment
    MERGER Merger MergeRequest
    REFLECTOR Reflector ReflectRequest Claim
Encoders
    What messages are searched with.
    Embedder default_embedder open_embedder
Recorded conversations
    Reading them, and feeding them to a session.
    Conversation RecordedMessage RecordedRound RecordedResponder load_conversations find_sample
    cut_rounds replay_conversation feed_round count_budget_tokens
Errors
    All that is raised on purpose.
    TopicLoomError ConfigurationError UnknownModelError StorageUnavailableError InputError
    MissingThreadError InvalidNameError NoNewMessageError NotAConversationError StorageError
    MissingRecordError BrokenInvariantError SessionBusyError TransitionError UnusableAnswerError
    ReplyError
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicloom.boundary.policy import AdsorberPolicy, BoundaryQuestion
    from topicloom.cli.memory import MemoryFiles, MemoryReport
    from topicloom.context.tokens import TokenCounter, count_budget_tokens
    from topicloom.domain.domain import Domain
    from topicloom.domain.planner import PLANNER, Planner, PlanRequest
    from topicloom.domain.selector import SELECTOR, Selection, Selector, SelectRequest
    from topicloom.errors import (
        BrokenInvariantError,
        ConfigurationError,
        InputError,
        InvalidNameError,
        MissingRecordError,
        MissingThreadError,
        NoNewMessageError,
        NotAConversationError,
        ReplyError,
        SessionBusyError,
        StorageError,
        StorageUnavailableError,
        TopicLoomError,
        TransitionError,
        UnknownModelError,
        UnusableAnswerError,
    )
    from topicloom.graph.review import (
        ReviewOptions,
        areview_session,
        build_review_graph,
        review_session,
    )
    from topicloom.graph.session import SessionGraph, build_session_graph
    from topicloom.graph.stored import get_session, open_session
    from topicloom.index.embedder import Embedder
    from topicloom.index.encoders import default_embedder, open_embedder
    from topicloom.recordings.conversations import Conversation, RecordedMessage, load_conversations
    from topicloom.recordings.replay import (
        RecordedRound,
        cut_rounds,
        feed_round,
        find_sample,
        replay_conversation,
    )
    from topicloom.reflection.beside import (
        ReflectionOptions,
        ReflectionResult,
        reflect_beside,
        reflect_once,
    )
    from topicloom.reflection.due import ReflectionPolicy
    from topicloom.reflection.facts import Claim, Fact
    from topicloom.reflection.reflector import REFLECTOR, Reflector, ReflectRequest
    from topicloom.reflection.scheduler import ReflectionReport, ReflectionScheduler, run_in_thread
    from topicloom.review.archive_index import forget_topics
    from topicloom.review.channels import ReviewReport
    from topicloom.review.decisions import Assessment, ReviewPolicy
    from topicloom.review.merger import MERGER, Merger, MergeRequest
    from topicloom.review.reviewer import REVIEWER, Reviewer, ReviewRequest
    from topicloom.roles.arbiter import ARBITER, Arbiter
    from topicloom.roles.base import Answer, LocalRole, Role, RoleName, RoleSpec, Usage
    from topicloom.roles.brief import BRIEF, Brief, BriefRequest, BriefWriter
    from topicloom.roles.choice import ModelSpec, embedded_roles
    from topicloom.roles.reader import READER, Reader, ReadRequest
    from topicloom.roles.registry import Roles
    from topicloom.roles.responder import RESPONDER, RecordedResponder, ReplyRequest, Responder
    from topicloom.roles.rewriter import REWRITER, Rewriter, RewriteRequest
    from topicloom.roles.router import ROUTER, Route, Router, RouteRequest
    from topicloom.roles.splitter import SPLITTER, SplitRequest, Splitter
    from topicloom.settings import Settings
    from topicloom.state.activation import ActivationPolicy
    from topicloom.state.changes import TopicChange
    from topicloom.state.channels import SessionInput, SessionState, TurnOptions
    from topicloom.state.plan import TurnPlan
    from topicloom.state.recall import Note, Quote, Reading, TopicNote
    from topicloom.state.receipt import Call, JournalEntry, Receipt
    from topicloom.state.rounds import Round
    from topicloom.state.session import Session
    from topicloom.state.splitting import Assignment, SplitPolicy
    from topicloom.state.stored_message import StoredMessage
    from topicloom.state.topics import Topic
    from topicloom.storage.base import Storage
    from topicloom.storage.files import FileStorage
    from topicloom.storage.purging import PurgePlan
    from topicloom.storage.sessions import SessionStore
    from topicloom.storage.stores import StoreStorage

__version__ = "0.1.0"
__all__ = [
    "ARBITER",
    "BRIEF",
    "MERGER",
    "PLANNER",
    "READER",
    "REFLECTOR",
    "RESPONDER",
    "REVIEWER",
    "REWRITER",
    "ROUTER",
    "SELECTOR",
    "SPLITTER",
    "ActivationPolicy",
    "AdsorberPolicy",
    "Answer",
    "Arbiter",
    "Assessment",
    "Assignment",
    "BoundaryQuestion",
    "Brief",
    "BriefRequest",
    "BriefWriter",
    "BrokenInvariantError",
    "Call",
    "Claim",
    "ConfigurationError",
    "Conversation",
    "Domain",
    "Embedder",
    "Fact",
    "FileStorage",
    "InputError",
    "InvalidNameError",
    "JournalEntry",
    "LocalRole",
    "MemoryFiles",
    "MemoryReport",
    "MergeRequest",
    "Merger",
    "MissingRecordError",
    "MissingThreadError",
    "ModelSpec",
    "NoNewMessageError",
    "NotAConversationError",
    "Note",
    "PlanRequest",
    "Planner",
    "PurgePlan",
    "Quote",
    "ReadRequest",
    "Reader",
    "Reading",
    "Receipt",
    "RecordedMessage",
    "RecordedResponder",
    "RecordedRound",
    "ReflectRequest",
    "ReflectionOptions",
    "ReflectionPolicy",
    "ReflectionReport",
    "ReflectionResult",
    "ReflectionScheduler",
    "Reflector",
    "ReplyError",
    "ReplyRequest",
    "Responder",
    "ReviewOptions",
    "ReviewPolicy",
    "ReviewReport",
    "ReviewRequest",
    "Reviewer",
    "RewriteRequest",
    "Rewriter",
    "Role",
    "RoleName",
    "RoleSpec",
    "Roles",
    "Round",
    "Route",
    "RouteRequest",
    "Router",
    "SelectRequest",
    "Selection",
    "Selector",
    "Session",
    "SessionBusyError",
    "SessionGraph",
    "SessionInput",
    "SessionState",
    "SessionStore",
    "Settings",
    "SplitPolicy",
    "SplitRequest",
    "Splitter",
    "Storage",
    "StorageError",
    "StorageUnavailableError",
    "StoreStorage",
    "StoredMessage",
    "TokenCounter",
    "Topic",
    "TopicChange",
    "TopicLoomError",
    "TopicNote",
    "TransitionError",
    "TurnOptions",
    "TurnPlan",
    "UnknownModelError",
    "UnusableAnswerError",
    "Usage",
    "areview_session",
    "build_review_graph",
    "build_session_graph",
    "count_budget_tokens",
    "cut_rounds",
    "default_embedder",
    "embedded_roles",
    "feed_round",
    "find_sample",
    "forget_topics",
    "get_session",
    "load_conversations",
    "open_embedder",
    "open_session",
    "reflect_beside",
    "reflect_once",
    "replay_conversation",
    "review_session",
    "run_in_thread",
]

_HOMES = {
    name: f"topicloom.{module}"
    for module, names in {
        "boundary.policy": "AdsorberPolicy BoundaryQuestion",
        "cli.memory": "MemoryFiles MemoryReport",
        "context.tokens": "TokenCounter count_budget_tokens",
        "domain.domain": "Domain",
        "domain.planner": "PLANNER PlanRequest Planner",
        "domain.selector": "SELECTOR SelectRequest Selection Selector",
        "errors": (
            "BrokenInvariantError ConfigurationError InputError InvalidNameError "
            "MissingRecordError MissingThreadError NoNewMessageError NotAConversationError "
            "ReplyError SessionBusyError StorageError StorageUnavailableError TopicLoomError "
            "TransitionError UnknownModelError UnusableAnswerError"
        ),
        "graph.review": "ReviewOptions areview_session build_review_graph review_session",
        "graph.session": "SessionGraph build_session_graph",
        "graph.stored": "get_session open_session",
        "index.embedder": "Embedder",
        "index.encoders": "default_embedder open_embedder",
        "recordings.conversations": "Conversation RecordedMessage load_conversations",
        "recordings.replay": "RecordedRound cut_rounds feed_round find_sample replay_conversation",
        "reflection.beside": "ReflectionOptions ReflectionResult reflect_beside reflect_once",
        "reflection.due": "ReflectionPolicy",
        "reflection.facts": "Claim Fact",
        "reflection.reflector": "REFLECTOR ReflectRequest Reflector",
        "reflection.scheduler": "ReflectionReport ReflectionScheduler run_in_thread",
        "review.archive_index": "forget_topics",
        "review.channels": "ReviewReport",
        "review.decisions": "Assessment ReviewPolicy",
        "review.merger": "MERGER MergeRequest Merger",
        "review.reviewer": "REVIEWER ReviewRequest Reviewer",
        "roles.arbiter": "ARBITER Arbiter",
        "roles.base": "Answer LocalRole Role RoleName RoleSpec Usage",
        "roles.brief": "BRIEF Brief BriefRequest BriefWriter",
        "roles.choice": "ModelSpec embedded_roles",
        "roles.reader": "READER ReadRequest Reader",
        "roles.registry": "Roles",
        "roles.responder": "RESPONDER RecordedResponder ReplyRequest Responder",
        "roles.rewriter": "REWRITER RewriteRequest Rewriter",
        "roles.router": "ROUTER Route RouteRequest Router",
        "roles.splitter": "SPLITTER SplitRequest Splitter",
        "settings": "Settings",
        "state.activation": "ActivationPolicy",
        "state.changes": "TopicChange",
        "state.channels": "SessionInput SessionState TurnOptions",
        "state.plan": "TurnPlan",
        "state.recall": "Note Quote Reading TopicNote",
        "state.receipt": "Call JournalEntry Receipt",
        "state.rounds": "Round",
        "state.session": "Session",
        "state.splitting": "Assignment SplitPolicy",
        "state.stored_message": "StoredMessage",
        "state.topics": "Topic",
        "storage.base": "Storage",
        "storage.files": "FileStorage",
        "storage.purging": "PurgePlan",
        "storage.sessions": "SessionStore",
        "storage.stores": "StoreStorage",
    }.items()
    for name in names.split()
}


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if not TYPE_CHECKING:  # a type checker goes by the imports above, and knows no other name

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used: numpy and the models load only then."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
