"""Make the session that `topicloom ui` opens without a name: `python scripts/build_sample.py`.

The packaged recording is replayed without a model, as `topicloom ui` does where it finds no such
session, and the folder is packed beside the recording. Two runs give the same messages, topics,
scores and quotes. Ids of checkpoints and seconds differ; on another kind of processor, vectors and
scores differ in their last digits. `app/tests/cli/test_packaged_sample.py` says when it has to be
run.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rich.console import Console

from topicloom import Settings
from topicloom_app.cli.context import make_context
from topicloom_app.cli.replay import RECALL, WINDOW
from topicloom_app.cli.sample import replay_sample
from topicloom_app.recordings.replay import find_sample, load_first_conversation

DAY = datetime(2026, 11, 26, 12, tzinfo=UTC)
"""When it is replayed: words such as "yesterday" and the age of topics depend on it."""


def make_session(folder: Path) -> None:
    """Replay the packaged recording into an empty folder."""
    begun = time.monotonic()
    settings = Settings(window=WINDOW, recall_share=RECALL, fsync=False)
    context, sample = make_context(folder, settings), find_sample()
    conversation = load_first_conversation(sample, None)

    def read_clock() -> datetime:
        return DAY + timedelta(seconds=time.monotonic() - begun)

    replay_sample(context, Console(stderr=True), sample.stem, conversation, read_clock)


def pack_folder(folder: Path, packed: Path) -> None:
    """Write the files of a folder into an archive, without locks and without times."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    with ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=9) as file:
        for name in names:
            if name.name != ".lock":
                entry = ZipInfo(name.as_posix())
                file.writestr(entry, (folder / name).read_bytes(), ZIP_DEFLATED, compresslevel=9)


if __name__ == "__main__":
    for name in [name for name in os.environ if name.startswith("TOPICLOOM_")]:
        del os.environ[name]  # the session that ships is that of the default settings
    with TemporaryDirectory() as made:
        make_session(Path(made))
        pack_folder(Path(made), packed := find_sample().with_suffix(".zip"))
    print(f"{packed.name}: {packed.stat().st_size:,} bytes")
