"""What is public, and where it is: `__init__.py` loads a name from there when it is first used."""

from .context.token_count import (
    TokenCounter as TokenCounter,
)
from .context.tokens import (
    count_budget_tokens as count_budget_tokens,
)
from .domain import (
    Domain as Domain,
)
from .domain.plan import (
    TurnPlan as TurnPlan,
)
from .domain.planner import (
    PLANNER as PLANNER,
    Planner as Planner,
    PlanRequest as PlanRequest,
)
from .domain.recall_source import (
    RecallHit as RecallHit,
    RecallQuery as RecallQuery,
    RecallSource as RecallSource,
)
from .domain.selector import (
    SELECTOR as SELECTOR,
    Selection as Selection,
    Selector as Selector,
    SelectRequest as SelectRequest,
)
from .errors import (
    ConfigurationError as ConfigurationError,
    ConflictError as ConflictError,
    EncryptionError as EncryptionError,
    InputError as InputError,
    InvalidNameError as InvalidNameError,
    LimitReachedError as LimitReachedError,
    MissingRecordError as MissingRecordError,
    MissingThreadError as MissingThreadError,
    NewerFormatError as NewerFormatError,
    NoNewMessageError as NoNewMessageError,
    NotAConversationError as NotAConversationError,
    OtherPersonError as OtherPersonError,
    ReplyError as ReplyError,
    SessionBusyError as SessionBusyError,
    StorageError as StorageError,
    StorageUnavailableError as StorageUnavailableError,
    TopicLoomError as TopicLoomError,
    TopicLoomWarning as TopicLoomWarning,
    TransitionError as TransitionError,
    UnknownModelError as UnknownModelError,
    UnusableAnswerError as UnusableAnswerError,
)
from .graph.checkpoints import (
    local_checkpointer as local_checkpointer,
)
from .graph.compiled import (
    SessionGraph as SessionGraph,
)
from .graph.deps import (
    open_roles as open_roles,
)
from .graph.middleware import (
    TopicMiddleware as TopicMiddleware,
)
from .graph.parts import (
    MemoryOptions as MemoryOptions,
    SessionOptions as SessionOptions,
)
from .graph.receipts import (
    ReceiptStream as ReceiptStream,
)
from .graph.session import (
    build_session_graph as build_session_graph,
)
from .memory.absence import (
    Absence as Absence,
)
from .memory.expiry import (
    Expired as Expired,
)
from .memory.memory import (
    Memory as Memory,
)
from .memory.persons import (
    DeletionReceipt as DeletionReceipt,
    PersonMemory as PersonMemory,
    PersonThread as PersonThread,
)
from .memory.purge import (
    adelete_session as adelete_session,
    delete_session as delete_session,
    delete_with_threads as delete_with_threads,
)
from .memory.reencrypt import (
    areencrypt as areencrypt,
    reencrypt as reencrypt,
)
from .memory.repair import (
    check_session as check_session,
    repair_session as repair_session,
)
from .memory.review import (
    areview_session as areview_session,
    review_session as review_session,
)
from .memory.stored import (
    get_session as get_session,
    open_session as open_session,
)
from .memory.values import (
    Forgotten as Forgotten,
    FoundMessage as FoundMessage,
    MemoryChange as MemoryChange,
    MemoryTopic as MemoryTopic,
)
from .reflection.due import (
    ReflectionPolicy as ReflectionPolicy,
)
from .reflection.fact_spans import (
    FactSpan as FactSpan,
)
from .reflection.facts import (
    Claim as Claim,
    Fact as Fact,
    FactChanges as FactChanges,
    Said as Said,
)
from .reflection.reflect import (
    ReflectionOptions as ReflectionOptions,
    ReflectionResult as ReflectionResult,
    reflect_beside as reflect_beside,
    reflect_once as reflect_once,
)
from .reflection.reflector import (
    REFLECTOR as REFLECTOR,
    Reflector as Reflector,
    ReflectRequest as ReflectRequest,
)
from .reflection.scheduler import (
    ReflectionScheduler as ReflectionScheduler,
    run_in_thread as run_in_thread,
)
from .reflection.store import (
    ReflectionStore as ReflectionStore,
)
from .review.archive_index import (
    forget_topics as forget_topics,
)
from .review.decisions import (
    Assessment as Assessment,
    ReviewPolicy as ReviewPolicy,
)
from .review.merger import (
    MERGER as MERGER,
    Merger as Merger,
    MergeRequest as MergeRequest,
)
from .review.report import (
    ReviewReport as ReviewReport,
)
from .review.reviewer import (
    REVIEWER as REVIEWER,
    Reviewer as Reviewer,
    ReviewRequest as ReviewRequest,
)
from .roles.arbiter import (
    ARBITER as ARBITER,
    Arbiter as Arbiter,
)
from .roles.base import (
    Answer as Answer,
    LocalRole as LocalRole,
    Role as Role,
    RoleName as RoleName,
    RoleSpec as RoleSpec,
    Usage as Usage,
)
from .roles.brief import (
    BRIEF as BRIEF,
    Brief as Brief,
    BriefRequest as BriefRequest,
    BriefWriter as BriefWriter,
)
from .roles.choice import (
    ModelSpec as ModelSpec,
    embedded_roles as embedded_roles,
)
from .roles.reader import (
    READER as READER,
    Reader as Reader,
    ReadRequest as ReadRequest,
    TopicWindow as TopicWindow,
)
from .roles.registry import (
    Roles as Roles,
)
from .roles.responder import (
    RESPONDER as RESPONDER,
    ReplyRequest as ReplyRequest,
    Responder as Responder,
)
from .roles.rewriter import (
    REWRITER as REWRITER,
    Rewriter as Rewriter,
    RewriteRequest as RewriteRequest,
)
from .roles.router import (
    ROUTER as ROUTER,
    Route as Route,
    Router as Router,
    RouteRequest as RouteRequest,
)
from .roles.splitter import (
    SPLITTER as SPLITTER,
    SplitRequest as SplitRequest,
    Splitter as Splitter,
)
from .search.embedder import (
    Embedder as Embedder,
)
from .search.encoders import (
    default_embedder as default_embedder,
    open_embedder as open_embedder,
)
from .settings import (
    Settings as Settings,
)
from .state.activation import (
    ActivationPolicy as ActivationPolicy,
)
from .state.changes import (
    TopicChange as TopicChange,
)
from .state.channels import (
    SessionInput as SessionInput,
    SessionState as SessionState,
    TurnOptions as TurnOptions,
)
from .state.chats import (
    ImportedChat as ImportedChat,
)
from .state.journal import (
    JournalEntry as JournalEntry,
)
from .state.limits import (
    DailyLimits as DailyLimits,
)
from .state.persons import (
    Person as Person,
)
from .state.recall import (
    Note as Note,
    Quote as Quote,
    Reading as Reading,
    TopicNote as TopicNote,
)
from .state.receipt import (
    Call as Call,
    Receipt as Receipt,
)
from .state.retention import (
    RetentionPolicy as RetentionPolicy,
)
from .state.rounds import (
    Round as Round,
)
from .state.session import (
    Session as Session,
)
from .state.splitting import (
    Assignment as Assignment,
    SplitPolicy as SplitPolicy,
)
from .state.stored_message import (
    StoredMessage as StoredMessage,
)
from .state.topics import (
    Topic as Topic,
)
from .storage.backend import (
    Backend as Backend,
    Batch as Batch,
    Rows as Rows,
)
from .storage.base import (
    Storage as Storage,
)
from .storage.chain import (
    RawEntry as RawEntry,
)
from .storage.encrypted import (
    EncryptedStorage as EncryptedStorage,
)
from .storage.encrypted_store import (
    EncryptedStore as EncryptedStore,
)
from .storage.encryption import (
    EncryptionKeys as EncryptionKeys,
    make_encryption_key as make_encryption_key,
)
from .storage.files import (
    FileStorage as FileStorage,
)
from .storage.protection import (
    make_serializer as make_serializer,
)
from .storage.purging import (
    PurgePlan as PurgePlan,
)
from .storage.repair import (
    Fault as Fault,
)
from .storage.sessions import (
    SessionStore as SessionStore,
)
from .storage.stores import (
    StoreStorage as StoreStorage,
)
from .topics.boundary_policy import (
    AdsorberPolicy as AdsorberPolicy,
    BoundaryQuestion as BoundaryQuestion,
)

__version__: str
__all__: list[str]
