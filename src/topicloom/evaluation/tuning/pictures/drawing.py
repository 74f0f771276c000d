"""All pictures of a turn log, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topicloom.errors import StorageUnavailableError
from topicloom.evaluation.tuning.pictures.lanes import draw_lanes
from topicloom.evaluation.tuning.pictures.prompt import draw_prompt
from topicloom.evaluation.tuning.pictures.scores import draw_scores
from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt


def draw_all(
    receipts: Sequence[Receipt], in_force: ActivationPolicy, out: Path, kinds: Sequence[str]
) -> list[Path]:
    """Draw all pictures of a log in which topics were read.

    Args:
        receipts: Of consecutive turns, in order.
        in_force: The settings that the log was made with.
        out: The folder that they are written to.
        kinds: `png`, `svg`.

    Returns:
        The files.

    Raises:
        StorageUnavailableError: They cannot be written.
    """
    pictures = {
        "scores": draw_scores(receipts, in_force),
        "topics": draw_lanes(receipts, in_force),
        "prompt": draw_prompt(receipts),
    }
    paths = [out / f"{name}.{kind}" for name in pictures for kind in kinds]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path in paths:
            pictures[path.stem].savefig(path)
    except OSError as error:
        raise StorageUnavailableError(f"pictures cannot be written to {out}: {error}") from error
    return paths
