"""Where each name of `topicloom.lab` is."""

from .context.notes import (
    render_note as render_note,
)
from .context.prefix import (
    PrefixMeter as PrefixMeter,
)
from .context.segments import (
    ContextWindowPolicy as ContextWindowPolicy,
    SegmentLayout as SegmentLayout,
    Summarize as Summarize,
    SummaryManager as SummaryManager,
)
from .context.token_count import (
    ToolLike as ToolLike,
)
from .context.tokens import (
    choose_counter as choose_counter,
)
from .context.transcript import (
    date_messages as date_messages,
    describe_blocks as describe_blocks,
    format_day as format_day,
    format_spoken_day as format_spoken_day,
    show_message as show_message,
    show_stretches as show_stretches,
)
from .domain.document import (
    Document as Document,
    is_active as is_active,
    list_events as list_events,
    parse_document as parse_document,
)
from .domain.edits import (
    apply_edits as apply_edits,
)
from .domain.lore import (
    DocumentLoreIndex as DocumentLoreIndex,
    LoreSource as LoreSource,
)
from .domain.plan import (
    SearchIntent as SearchIntent,
)
from .domain.planner import (
    EmbeddedPlanner as EmbeddedPlanner,
)
from .domain.selector import (
    EmbeddedSelector as EmbeddedSelector,
)
from .domain.skeleton import (
    SkeletonRenderer as SkeletonRenderer,
    build_skeleton_layer as build_skeleton_layer,
)
from .effects import (
    Step as Step,
)
from .errors import (
    suggest as suggest,
)
from .graph.deps import (
    open_adsorber as open_adsorber,
)
from .memory.stored import (
    Graph as Graph,
)
from .nodes.user_knowledge import (
    UserKnowledge as UserKnowledge,
)
from .prompts.loader import (
    load_prompt as load_prompt,
)
from .prompts.wording import (
    get_wording as get_wording,
)
from .roles.brief import (
    ChatBriefWriter as ChatBriefWriter,
    EmbeddedBriefWriter as EmbeddedBriefWriter,
    make_segment_request as make_segment_request,
    summarize_by_extracts as summarize_by_extracts,
)
from .roles.chat import (
    Chat as Chat,
)
from .roles.models import (
    open_model as open_model,
)
from .roles.prompt_caches import (
    find_breakpoints as find_breakpoints,
)
from .roles.reader import (
    ChatReader as ChatReader,
)
from .roles.registry import (
    ROLES as ROLES,
    spec_of as spec_of,
)
from .roles.responder import (
    ChatResponder as ChatResponder,
)
from .roles.router import (
    ChatRouter as ChatRouter,
)
from .roles.splitter import (
    ChatSplitter as ChatSplitter,
)
from .roles.values import (
    parse_verdict as parse_verdict,
)
from .search.bm25 import (
    LexicalIndex as LexicalIndex,
)
from .search.bundled import (
    BGE_CHINESE as BGE_CHINESE,
    MINILM as MINILM,
    BundledEmbedder as BundledEmbedder,
)
from .search.contrast import (
    nearness as nearness,
)
from .search.embedder import (
    CachedEmbedder as CachedEmbedder,
    Vectors as Vectors,
    dot_products as dot_products,
    unit_rows as unit_rows,
)
from .search.encoders import (
    LangChainEmbeddings as LangChainEmbeddings,
)
from .search.excerpts import (
    RankedSentences as RankedSentences,
)
from .search.hashing import (
    HashingEmbedder as HashingEmbedder,
)
from .search.message_columns import (
    Codes as Codes,
    MessageColumns as MessageColumns,
    read_rounds as read_rounds,
)
from .search.message_search import (
    Query as Query,
    weigh_by_rank as weigh_by_rank,
)
from .search.need import (
    NeedExamples as NeedExamples,
    judge_need as judge_need,
    load_need_examples as load_need_examples,
)
from .search.packed_examples import (
    load_examples as load_examples,
)
from .search.ranking import (
    FLAT as FLAT,
    MEETING as MEETING,
    RECALL as RECALL,
    TALK as TALK,
    Asked as Asked,
    Floats as Floats,
    Messages as Messages,
    RankWeights as RankWeights,
    Recipe as Recipe,
)
from .search.sentences import (
    sentences_of as sentences_of,
)
from .search.turn_topics import (
    TurnContext as TurnContext,
)
from .search.words import (
    telling_words as telling_words,
    words_of as words_of,
)
from .state.activation import (
    INITIAL_RELEVANCE as INITIAL_RELEVANCE,
    activate_candidates as activate_candidates,
    update_activation as update_activation,
)
from .state.fence import (
    fence as fence,
    fence_line as fence_line,
)
from .state.grouping import (
    link_groups as link_groups,
)
from .state.hierarchy import (
    find_path as find_path,
)
from .state.language import (
    CJK_RUN as CJK_RUN,
    Language as Language,
    detect_language as detect_language,
)
from .state.note_draft import (
    PromptCosts as PromptCosts,
)
from .state.persons import (
    sees as sees,
)
from .state.quoting import (
    Readings as Readings,
    select_quotes as select_quotes,
)
from .state.recall import (
    LayoutName as LayoutName,
    Stretches as Stretches,
    parse_message_number as parse_message_number,
)
from .state.rounds import (
    group_rounds as group_rounds,
)
from .state.session import (
    Turn as Turn,
)
from .state.stored_message import (
    get_text as get_text,
    to_stored_message as to_stored_message,
)
from .storage.disk import (
    fresh_name as fresh_name,
    replace_file as replace_file,
)
from .storage.file_rows import (
    BatchFile as BatchFile,
)
from .storage.thread_profiles import (
    hash_words as hash_words,
    read_profiles as read_profiles,
)
from .storage.topic_reader import (
    TopicReader as TopicReader,
)
from .storage.vectors import (
    VectorLog as VectorLog,
)
from .texts import (
    FilledText as FilledText,
)
from .topics.adsorber import (
    Adsorber as Adsorber,
)
from .topics.belonging import (
    BelongingWeights as BelongingWeights,
    Pairs as Pairs,
    apply_weights as apply_weights,
    compare_pairs as compare_pairs,
)
from .topics.boundary_cues import (
    Utterance as Utterance,
)
from .topics.boundary_features import (
    ONLINE_NAMES as ONLINE_NAMES,
    REACH as REACH,
    VERSION as VERSION,
    Features as Features,
    band_of as band_of,
    in_cjk as in_cjk,
    message_features as message_features,
    online_features as online_features,
    similarity_features as similarity_features,
)
from .topics.boundary_model import (
    PACKAGED as PACKAGED,
    BoundaryModel as BoundaryModel,
    Matrix as Matrix,
    Network as Network,
    load_boundary_model as load_boundary_model,
    standardise as standardise,
)
from .topics.boundary_policy import (
    Granularity as Granularity,
)
from .topics.retrospective import (
    RETROSPECTIVE_NAMES as RETROSPECTIVE_NAMES,
    following_features as following_features,
    gap_features as gap_features,
)
from .topics.runs import (
    Runs as Runs,
    cut_runs as cut_runs,
)
from .topics.session_index import (
    SessionIndex as SessionIndex,
)
from .topics.similarity import (
    Band as Band,
)

__all__: list[str]
