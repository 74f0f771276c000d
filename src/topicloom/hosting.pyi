"""Where each name of `topicloom.hosting` is."""

from .errors import (
    LIMITED as LIMITED,
)
from .extras import (
    name_install as name_install,
)
from .graph.checkpoints import (
    open_local_store as open_local_store,
)
from .graph.compiled import (
    CompiledSessionGraph as CompiledSessionGraph,
)
from .graph.deps import (
    choose_models as choose_models,
    open_role_model as open_role_model,
)
from .graph.keys import (
    load_keys as load_keys,
)
from .graph.postgres import (
    open_postgres_saver as open_postgres_saver,
    open_postgres_store as open_postgres_store,
)
from .memory.background import (
    make_scheduler as make_scheduler,
    run_background as run_background,
)
from .memory.expiry import (
    expire_due as expire_due,
)
from .memory.stored import (
    Graph as Graph,
    find_deps as find_deps,
    find_storage as find_storage,
)
from .nodes.runs import (
    name_thread as name_thread,
)
from .prompts.wording import (
    strip_own_replies as strip_own_replies,
)
from .reflection.due import (
    DueState as DueState,
)
from .reflection.reflect import (
    Reflection as Reflection,
)
from .roles.models import (
    get_model_name as get_model_name,
    take_retries as take_retries,
    to_chunk as to_chunk,
)
from .roles.servers import (
    Need as Need,
    Server as Server,
)
from .search.sentences import (
    sentences_of as sentences_of,
)
from .search.words import (
    telling_words as telling_words,
)
from .state.activation import (
    INITIAL_RELEVANCE as INITIAL_RELEVANCE,
    activate_candidates as activate_candidates,
    update_activation as update_activation,
)
from .state.content_blocks import (
    get_media_kind as get_media_kind,
)
from .state.folding import (
    fold as fold,
)
from .state.hierarchy import (
    PATH_SEPARATOR as PATH_SEPARATOR,
    build_full_name as build_full_name,
    find_path as find_path,
)
from .state.identity import (
    digest as digest,
    make_message_key as make_message_key,
)
from .state.language import (
    LanguageChoice as LanguageChoice,
)
from .state.message_form import (
    make_storable as make_storable,
)
from .state.messages import (
    has_content as has_content,
)
from .state.persons import (
    sees as sees,
)
from .state.recall import (
    parse_message_number as parse_message_number,
)
from .state.receipt import (
    Prices as Prices,
    price_call as price_call,
)
from .state.rounds import (
    group_rounds as group_rounds,
)
from .state.safe_text import (
    clip as clip,
    cut as cut,
    describe_error as describe_error,
    digest_text as digest_text,
    replace_surrogates as replace_surrogates,
)
from .state.stored_message import (
    REMOVED as REMOVED,
    get_text as get_text,
    parse_iso_seconds as parse_iso_seconds,
)
from .state.topics import (
    TopicTable as TopicTable,
)
from .state.zones import (
    find_zone as find_zone,
)
from .storage.disk import (
    reachable as reachable,
    replace_file as replace_file,
)
from .storage.message_rows import (
    from_row as from_row,
    is_left_of as is_left_of,
    to_row as to_row,
)
from .storage.names import (
    safe_name as safe_name,
)
from .storage.protection import (
    protect_storage as protect_storage,
)
from .storage.writers import (
    find_newest as find_newest,
    take_back as take_back,
)
from .telemetry.metrics import (
    METRICS as METRICS,
    Measurement as Measurement,
    Metric as Metric,
)
from .texts import (
    FilledText as FilledText,
)
from .topics.naming import (
    NAME_LIMIT as NAME_LIMIT,
    find_keywords as find_keywords,
)

__all__: list[str]
