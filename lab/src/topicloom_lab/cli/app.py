"""`topicloom eval`, `train` and `tune`: the commands and their options.

What they do is imported when one of them runs. The package's command line finds them by the entry
points in the group `topicloom.commands`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Option, Typer

SOURCES = """
Files: conversations with questions, dialogues with segments, conversations with threads; one JSON
a line. Texts with queries: one JSON. .xz is fine.

Generators, for `generate` and as sources of `run`: sniah (needle, haystack, tokens, depths, form,
message, together, seed), oolong (items, message, conversations, seed), hotpotqa (folder, message,
seed). A specification is NAME:OPTION=VALUE,OPTION=VALUE, such as
sniah:needle=uuid,haystack=prose,tokens=1000000.
"""
"""The data to measure on, for `topicloom eval --help`."""


def number(help: str, least: int = 1) -> Any:
    """An option that takes a whole number, the least one or more."""
    return Option(metavar="N", min=least, help=help)


AsJson = Annotated[bool, Option("--json", help="Print one JSON object a line.")]
Out = Annotated[Path, Argument(metavar="OUT", help="A folder of results.")]

Recordings = Annotated[
    list[str], Argument(help="Files of conversations, or `sample`, which ships.")
]
ConversationFile = Annotated[
    str, Argument(help="A file of conversations with questions, or `sample`, which ships.")
]
First = Annotated[int, number("Of each file, the first ones.")]
Model = Annotated[str, Option(help="As openai:NAME, for any server that speaks its protocol.")]
BaseUrl = Annotated[str | None, Option(help="The server, such as http://127.0.0.1:8080/v1.")]
Rows = Annotated[Path | None, Option(help="Results, one JSON a case; goes on where it stopped.")]
Threads = Annotated[
    Path | None,
    Option(help="Also write the topic of each message, for `eval threads`; of realmem alone."),
]
Window = Annotated[int, number("Main window in tokens during the replay.", 1_000)]
TopicWindow = Annotated[int, number("Window of a topic in tokens.", 1_000)]
Splitter = Annotated[
    Literal["embedded", "gold"],
    Option(help="Who moves messages into topics; `gold`: a model that knows the threads."),
]

eval_app = Typer(
    help="Measure on recorded conversations.",
    epilog=SOURCES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@eval_app.command()
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


@eval_app.command()
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


@eval_app.command()
def segmentation(
    file: Annotated[Path, Argument(help="Dialogues with segments, one JSON a line.")],
    mode: Annotated[
        Literal["online", "retrospective"],
        Option(help="Decide as messages come, or knowing the whole dialogue."),
    ] = "online",
    granularity: Annotated[
        Literal["auto", "fine", "coarse"], Option(help="How fine topics are.")
    ] = "auto",
    weights: Annotated[
        Path | None, Option(help="Weights of `topicloom train boundary`; else those shipped.")
    ] = None,
    out: Annotated[Path | None, Option(help="Results, one JSON a dialogue.")] = None,
    json: AsJson = False,
) -> None:
    """Find where topics begin, and compare with dialogues whose segments are known."""
    from topicloom_lab.cli.boundaries import run_segmentation

    run_segmentation(file, mode, granularity, weights, out, as_json=json)


@eval_app.command()
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


@eval_app.command()
def threads(
    file: Annotated[Path, Argument(help="Conversations with threads, one JSON a line.")],
    window: Window = 8_000,
    splitter: Splitter = "embedded",
    out: Annotated[Path | None, Option(help="Results, one JSON a conversation.")] = None,
    json: AsJson = False,
) -> None:
    """Feed interleaved talk to a session, and compare its topics with the known ones.

    Twice: as messages come, when the graph only knows where a topic begins, and after the splits
    moved them. Small windows split often; what is still unsplit at the end is split then. Messages
    without a thread are not judged; one that the session has in no topic is a topic of its own.
    """
    from topicloom_lab.cli.boundaries import run_threads

    run_threads(file, window, splitter, out, as_json=json)


@eval_app.command()
def run(
    config: Annotated[
        Path | None,
        Argument(help="What to compare, as TOML; the packaged example if not given."),
    ] = None,
    out: Annotated[Path | None, Option(help="Where results go, if not as it says.")] = None,
    again: Annotated[
        list[str] | None, Option(help="Run this strategy although it is finished.")
    ] = None,
    example: Annotated[bool, Option("--example", help="Print the packaged example.")] = False,
    json: AsJson = False,
) -> None:
    """Compare context strategies on recorded conversations, and write a report.

    A cell is one conversation under one strategy and budget. What is finished is not run again.
    """
    from topicloom_lab.cli.comparing import print_example, run_config

    if example:
        print_example()
        return
    run_config(config, out, again or (), as_json=json)


@eval_app.command()
def fetch(
    name: Annotated[
        str | None, Argument(help="A public data set; all are listed if not given.")
    ] = None,
    out: Annotated[Path | None, Option(help="File to write; NAME.jsonl if not given.")] = None,
    first: Annotated[int | None, number("Only the first conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Download a public data set, and write it as `eval run` and the others read it.

    Says where it comes from and under which licence it is.
    """
    from topicloom_lab.cli.data_files import list_data_sets, run_fetch

    if name is None:
        list_data_sets()
    else:
        run_fetch(name, out or Path(f"{name}.jsonl"), first, threads)


@eval_app.command()
def convert(
    name: Annotated[str, Argument(help="The data set that the files are of.")],
    files: Annotated[
        list[Path],
        Argument(help="Its files as they are published; of lifebench, a folder for each person."),
    ],
    out: Annotated[Path, Option(help="File to write.")],
    first: Annotated[int | None, number("Only the first conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Write files of a public data set as `eval run` and the others read it."""
    from topicloom_lab.cli.data_files import run_convert

    run_convert(name, files, out, first, threads)


@eval_app.command()
def report(out: Out, json: AsJson = False) -> None:
    """Write report.md and the figures of a folder of results once more."""
    from topicloom_lab.cli.comparing import write_again

    write_again(out, as_json=json)


@eval_app.command()
def misses(
    out: Out,
    strategy: Annotated[str, Option(help="Whose misses.")] = "topicloom",
    against: Annotated[str | None, Option(help="Only what this strategy found.")] = None,
    source: Annotated[str | None, Option(help="Only this file; a part of its name.")] = None,
    budget: Annotated[int | None, Option(help="Only this budget.")] = None,
    category: Annotated[str | None, Option(help="Only this category.")] = None,
    limit: Annotated[int, number("Questions shown at most.")] = 20,
    json: AsJson = False,
) -> None:
    """Show questions whose evidence was missed, with the messages that were."""
    from topicloom_lab.cli.comparing import show_misses

    show_misses(out, strategy, against, source, budget, category, limit, as_json=json)


@eval_app.command()
def generate(
    spec: Annotated[
        str, Argument(help="Generator and options: sniah:needle=uuid,tokens=1000000,seed=1.")
    ],
    out: Annotated[Path, Option(help="Where the conversations go, one JSON a line.")],
) -> None:
    """Make conversations up, with questions and evidence. The same options make the same."""
    from topicloom_lab.cli.data_files import run_generate

    run_generate(spec, out)


@eval_app.command()
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


@eval_app.command()
def roles(
    files: Recordings,
    model: Model,
    base_url: BaseUrl = None,
    prompts: Annotated[int, number("Prompts of each role.")] = 20,
    window: Window = 4_000,
    topic_window: TopicWindow = 6_000,
    conversations: First = 1,
    questions: Annotated[int, number("Asked of each conversation.", 0)] = 20,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Put real prompts of the roles to a model, and see how many of its answers can be parsed.

    The prompts are what the roles are asked while conversations are replayed, reflected upon,
    asked about and reviewed; the embedded roles decide how that goes on. The splitter has the main
    window, all others that of a topic. Prompts and raw answers are kept.

    All roles but the responder, whose replies nobody parses, and the arbiter: `eval arbiter` asks
    it about cases with a known answer.
    """
    from topicloom.settings import Settings
    from topicloom_lab.cli.roles import run_roles
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url)
    windows = Settings(window=window, topic_window=topic_window)
    run_roles(files, opened, windows, prompts, questions, conversations, out, as_json=json)


@eval_app.command()
def arbiter(
    model: Annotated[
        str | None,
        Option(help="openai:NAME, or rerank:NAME for a cross-encoder; else nobody is asked."),
    ] = None,
    base_url: BaseUrl = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Ask an arbiter about 128 messages that go on with a task or do not, whatever their words.

    In 64 the words point the wrong way: they go on in new words, or begin something new in similar
    ones. In the other 64 they point the right way. Prints its verdicts, their AUC beside those of
    the boundary model, of a cosine and of its opposite, and the splits that follow as a session
    would make them: where the boundary model is in doubt the ruling decides, elsewhere nobody is
    asked.
    """
    from topicloom_lab.cli.arbiter import run_arbiter
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url, max_tokens=16) if model else None
    run_arbiter(opened, out, as_json=json)


@eval_app.command()
def answers(
    files: Recordings,
    model: Model,
    base_url: BaseUrl = None,
    questions: Annotated[int, number("Of each conversation.")] = 20,
    conversations: First = 1,
    budget: Annotated[int, number("Tokens of a context.")] = 1_000,
    skip: Annotated[
        list[str] | None, Option(help="Leave this category out; may be repeated.")
    ] = None,
    layout: Annotated[
        list[str] | None,
        Option(
            help="Also answer from a note in this form. You can give it more than"
            " once; `list` shows all."
        ),
    ] = None,
    longest: Annotated[int, number("Most words that an expected answer may have.")] = 12,
    requests: Annotated[
        Path | None,
        Option(help="Write the requests to this file as a batch for OpenAI, and ask nobody."),
    ] = None,
    replies: Annotated[Path | None, Option(help="File with the results of such a batch.")] = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Have a model answer questions from what topicloom, a search and a sliding window recall.

    The budget is the same for all of them, and so is the prompt. Exact match and F1 are those of
    SQuAD, Chinese by characters. The embedded roles recall; the model only answers.
    """
    from topicloom_lab.cli.answers import print_layouts, run_answers
    from topicloom_lab.opened import ModelOptions

    if layout and "list" in layout:
        print_layouts(as_json=json)
        return
    opened = ModelOptions(model, base_url, 48, requests, replies)
    run_answers(
        files,
        opened,
        budget,
        skip or (),
        questions,
        conversations,
        out,
        layouts=layout or (),
        longest=longest,
        as_json=json,
    )


train_app = Typer(
    help="Train the small model that ships, from dialogues with marked topics.",
    no_args_is_help=True,
    # Without it, the only command would be the whole of `train`.
    callback=lambda: None,
)


@train_app.command()
def boundary(
    data: Annotated[Path, Argument(help="Folder with `segmentation` in it.")],
    out: Annotated[Path, Option(help="Weights to write.")] = Path("boundary.npz"),
    seed: Annotated[int, Option(help="Of all that is drawn; the same seed, the same weights.")] = 0,
) -> None:
    """Learn where topics begin, from `segmentation/*.jsonl`.

    Writes weights, and beside them what they are and their figures out of sample.
    """
    from topicloom_lab.cli.boundaries import run_training

    run_training(data, out, seed)


def tune(
    context: Context,
    log: Annotated[str, Argument(metavar="LOG", help="A session, or what receipt --json printed.")],
    out: Annotated[
        Path | None, Option(help="Folder for the pictures; tune-NAME if not given.")
    ] = None,
    plots: Annotated[bool, Option(help="Whether to draw pictures.")] = True,
    svg: Annotated[bool, Option("--svg", help="Draw them as SVG too.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a turn log says about the thresholds, and what other thresholds would have done."""
    from topicloom.cli.console import CliOptions
    from topicloom_lab.cli.tuning import run_tune

    given = context.find_object(CliOptions) or CliOptions()
    kinds = ("png", "svg") if svg else ("png",)
    run_tune(given, log, out, kinds if plots else (), as_json=json)
