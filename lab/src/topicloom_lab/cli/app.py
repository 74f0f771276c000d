"""The list of all commands: `topicloom eval`, `train` and `tune`. `commands/` has their options.

The package's command line finds them by the entry points in the group `topicloom.commands`.
"""

from typer import Typer

from topicloom_lab.cli.commands import comparison, data, models, recall, topics
from topicloom_lab.cli.commands.tuning import tune as tune

SOURCES = """
The commands read conversations with questions, dialogues with segments, and conversations with
threads, one JSON object a line. Texts with queries are one JSON object. Files may be packed as .xz.

Generators make conversations, for `generate` and as sources of `run`. They are sniah (needle,
haystack, tokens, depths, form, message, together, seed), oolong (items, message, conversations,
seed) and hotpotqa (folder, message, seed). Write NAME:OPTION=VALUE,OPTION=VALUE, such as
sniah:needle=uuid,haystack=prose,tokens=1000000.
"""
"""The data to measure on, for `topicloom eval --help`."""

eval_app = Typer(
    help="Measure on recorded conversations.",
    epilog=SOURCES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

eval_app.command()(recall.memory)
eval_app.command()(recall.idle)
eval_app.command()(topics.segmentation)
eval_app.command()(recall.retrieval)
eval_app.command()(topics.threads)
eval_app.command()(comparison.run)
eval_app.command()(data.fetch)
eval_app.command()(data.convert)
eval_app.command()(comparison.report)
eval_app.command()(comparison.misses)
eval_app.command()(data.generate)
eval_app.command()(recall.caching)
eval_app.command()(models.roles)
eval_app.command()(models.arbiter)
eval_app.command()(models.answers)

train_app = Typer(
    help="Train the packaged small model on dialogues with marked topics.",
    no_args_is_help=True,
    # Without it, the only command would be the whole of `train`.
    callback=lambda: None,
)

train_app.command()(topics.boundary)
