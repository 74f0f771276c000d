"""One chat session that never ends: topic windows behind a single conversation, on LangGraph.

All that applications use is here and in `topicloom.testing`. The folders below are internal: what
is in them may move or change with every release. A name loads what it needs when it is first used.

A session
    The graph, what can be tuned, and what a turn takes.
    build_session_graph SessionOptions local_checkpointer SessionGraph Settings TurnOptions
    SessionState SessionInput Domain ModelSpec TopicChange ImportedChat TokenCounter
    TopicMiddleware MemoryOptions ReceiptStream
An application's own data
    Sources that a turn recalls from, beside the conversation.
    RecallSource RecallQuery RecallHit
Policies
    The groups of settings.
    SplitPolicy ActivationPolicy AdsorberPolicy ReviewPolicy ReflectionPolicy DailyLimits
    RetentionPolicy
Memory
    What a session remembers, to look at and to change.
    Memory MemoryTopic FoundMessage MemoryChange Forgotten Expired Absence
    PersonMemory PersonThread DeletionReceipt
What is stored
    A session at rest: its messages, topics, notes, receipts.
    get_session open_session Session SessionStore check_session repair_session Fault
    PurgePlan delete_session adelete_session delete_with_threads
    StoredMessage Topic Round Note TopicNote Receipt Call JournalEntry
Storages
    Where sessions live.
    Storage FileStorage StoreStorage
Encryption
    Everything that is kept, encrypted; with the extra `topicloom[encryption]`.
    EncryptionKeys make_encryption_key EncryptedStorage EncryptedStore make_serializer
    reencrypt areencrypt
A storage of your own
    What it gives, which `topicloom.testing.list_storage_checks` checks.
    Backend Rows RawEntry Batch
Reviews
    Looking back at a session, and its topics beside other memories.
    review_session areview_session ReviewReport forget_topics

Reflection
    Durable facts about the user.
    reflect_beside reflect_once ReflectionOptions ReflectionResult ReflectionScheduler
    run_in_thread ReflectionStore Fact FactChanges FactSpan Said Person
Roles
    What a model does here: of each role its description, Protocol, request and answer. An own one
    takes its place by `roles.replace(READER, MyReader())`.
    Roles open_roles embedded_roles Role LocalRole RoleName RoleSpec Answer Usage
    RESPONDER Responder ReplyRequest
    SPLITTER Splitter SplitRequest Assignment
    READER Reader ReadRequest TopicWindow Reading Quote
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
Measuring
    The tokens that budgets are counted in.
    count_budget_tokens
Errors
    All that is raised on purpose.
    TopicLoomError ConfigurationError UnknownModelError EncryptionError
    StorageUnavailableError InputError
    OtherPersonError
    MissingThreadError InvalidNameError NoNewMessageError NotAConversationError StorageError
    MissingRecordError NewerFormatError SessionBusyError ConflictError
    TransitionError UnusableAnswerError ReplyError LimitReachedError TopicLoomWarning
"""

from __future__ import annotations

from typing import Any

from lazy_loader import attach_stub

_load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("topicloom")
    return _load(name)
