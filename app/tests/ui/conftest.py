"""The inspected session, made once and copied for each test, and the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from browsing import launch
from inspected import fill_session, open_folder
from playwright.sync_api import Browser

from topicloom.hosting import CompiledSessionGraph


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the session in it."""
    folder = tmp_path_factory.mktemp("inspected")
    with open_folder(folder) as graph:
        fill_session(graph)
    return folder


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> Iterator[CompiledSessionGraph]:
    """The graph over a copy of it."""
    copytree(filled, tmp_path, dirs_exist_ok=True)
    with open_folder(tmp_path) as graph:
        yield graph


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    with launch() as browser:
        yield browser
