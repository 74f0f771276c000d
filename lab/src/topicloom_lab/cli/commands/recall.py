"""What is recalled: evidence in the context, ranking, and what caches serve of the prompts."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from topicloom_lab.cli.commands.options import (
    AsJson,
    ConversationFile,
    Rows,
    Splitter,
    TopicWindow,
    Window,
    number,
)


def memory(
    file: ConversationFile,
    budget: Annotated[
        list[int] | None, number("Tokens of recalled context; may be repeated. Without it 4,000.")
    ] = None,
    out: Rows = None,
    recent: Annotated[
        int | None,
        number("Newest messages in view anyway; else none, or those before a turn that asks.", 0),
    ] = None,
    window: Window = 8_000,
    topic_window: TopicWindow = 64_000,
    topics: Annotated[
        Literal["own", "gold", "none"],
        Option(help="The session's own topics, those of --threads, or one for all."),
    ] = "own",
    threads: Annotated[
        Path | None, Option(help="The threads of the same messages, one JSON a line.")
    ] = None,
    splitter: Splitter = "embedded",
    reviews: Annotated[
        Literal["none", "daily"],
        Option(help="Review at every midnight that the recorded dates pass."),
    ] = "none",
    readers: Annotated[
        str,
        Option(help="Who reads for a question: embedded, ideal, noisy:SHARE, silent or garbage."),
    ] = "embedded",
    agent: Annotated[
        bool, Option(help="An agent with TopicMiddleware instead of the session graph.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Replay conversations, ask their questions, and see whether the evidence is in the context.

    A token here is a CJK character or four other characters, of `speaker: text`. Each question
    starts from the state after the whole conversation and does not become part of it. One that is a
    turn of the conversation (`asked_at`) is asked in its place: only what was said before it is
    known, and what a session would have in view there is in view. Several budgets are asked of the
    same session. The clock is that of the recording. At the end every message must
    be in exactly one place, word for word.

    Readers other than the embedded ones are simulated chat models on the real prompts, and so is
    the router: `ideal` ones know the evidence, `noisy:0.2` ones are wrong one time in five,
    `silent` ones say that no topic matters, `garbage` ones answer rubbish. A `gold` splitter is a
    simulated chat model likewise, and knows --threads; `--topics gold` asks no model.
    """
    from topicloom_lab.cli.memory import run_memory
    from topicloom_lab.memory import MemoryEvaluation
    from topicloom_lab.readers import ReaderChoice
    from topicloom_lab.threads import load_labels

    evaluation = MemoryEvaluation(
        budgets=tuple(dict.fromkeys(budget or (4_000,))),
        recent=recent,
        window=window,
        topic_window=topic_window,
        topics=topics,
        labels=load_labels(threads) if threads else {},
        splitter=splitter,
        reviews=reviews,
        readers=ReaderChoice.parse(readers),
        agent=agent,
    )
    run_memory(file, out, evaluation, as_json=json)


def idle(
    files: Annotated[
        list[str] | None,
        Argument(help="RealMem's file, `sample`, which ships, or others; `sample` if none."),
    ] = None,
    messages: Annotated[
        Path | None, Option(help="What to ask, one JSON a line; else the packaged messages.")
    ] = None,
    budget: Annotated[int, number("Tokens that may be recalled for a message.")] = 4_000,
    out: Rows = None,
    window: Window = 8_000,
    topic_window: TopicWindow = 64_000,
    readers: Annotated[
        str,
        Option(help="Who reads for a message: embedded, ideal, noisy:SHARE or garbage."),
    ] = "embedded",
    json: AsJson = False,
) -> None:
    """See what is recalled for messages that need no memory, and for short ones that do.

    240 messages ship that were written for the packaged sample and two people of RealMem: thanks,
    small talk, general knowledge and errands, half of them in Chinese, and such as "And the
    cabinets?" or "Same as last time" with the messages that they rest on. Each is asked in its
    place, with in view what a session has in view there, and does not become part of it. Of RealMem
    the first messages of other talk that need nothing are asked as well.
    """
    from topicloom_lab.cli.idle import run_idle
    from topicloom_lab.idle.measure import IdleEvaluation
    from topicloom_lab.readers import ReaderChoice

    evaluation = IdleEvaluation(budget, window, topic_window, ReaderChoice.parse(readers))
    run_idle(files or (), messages, out, evaluation, as_json=json)


def retrieval(
    files: Annotated[list[Path], Argument(help="Texts and queries, one JSON a file.")],
    encoder: Annotated[
        str | None, Option(help="As in TOPICLOOM_EMBEDDER; else the one that ships.")
    ] = None,
    json: AsJson = False,
) -> None:
    """See whether the right text comes first, by words, by the encoder, by both, and ranked.

    A file is {"docs": [text, ...], "queries": [[text, [index of a right text, ...]], ...]}; .xz is
    fine. `words` is BM25, `encoder` the cosine, `both` flat search, `ranking` what a session does
    if the texts are the messages of a user: length and what stands beside a text count too.
    """
    from topicloom_lab.cli.retrieval import run_retrieval

    run_retrieval(files, encoder, as_json=json)


def caching(
    file: ConversationFile,
    turns: Annotated[int, number("Answered turns to replay.")] = 200,
    window: Window = 128_000,
    topic_window: TopicWindow = 64_000,
    recall: Annotated[
        int | None,
        number("Tokens that a turn may recall; else a share."),
    ] = None,
    layout: Annotated[
        Literal["ledger", "spec"] | None,
        Option(help="Only this layout; else both, and `ledger` for a server."),
    ] = None,
    seconds: Annotated[float, number("From one turn to the next: caches forget.", 0)] = 60.0,
    conversation: Annotated[int, number("Which of the file.")] = 1,
    server: Annotated[
        str | None,
        Option(help="Send the prompts there, too: a base URL; its cache must be empty."),
    ] = None,
    model: Annotated[str, Option(help="The model to ask the server for.")] = "openai:any",
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Replay a conversation, and see what providers' caches would have served of its prompts.

    The embedded roles decide; the prompts are those of the chat-model roles. Topic windows and the
    main window are counted apart, as two models would be.

    With a server, all prompts go to it in their order, each for one token of answer, and its own
    counts are printed, main window and topic windows apart. Whoever goes on with a run that was
    stopped leaves the server running: what it holds is part of the measurement.
    """
    from topicloom.settings import Settings
    from topicloom_lab.cli.caching import run_caching
    from topicloom_lab.opened import ModelOptions

    # A cache that has seen one layout's topic windows knows those of the other.
    both: tuple[Literal["ledger", "spec"], ...] = ("ledger", "spec")
    layouts = (layout,) if layout else both[:1] if server else both
    real = ModelOptions(model, server, max_tokens=1) if server else None
    given = Settings(window=window, topic_window=topic_window, recall_tokens=recall)
    run_caching(file, conversation, turns, seconds, given, layouts, real, out, as_json=json)
