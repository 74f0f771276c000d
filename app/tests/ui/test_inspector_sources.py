"""The inspector shows what an application's own recall source found, without knowing the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import open_page
from inspected import THREAD, open_folder
from langchain_core.messages import HumanMessage
from playwright.sync_api import Browser, expect
from tickets import Tickets

from topicloom import Domain
from topicloom.domain.state import DomainInput

pytestmark = pytest.mark.slow


def test_what_a_source_found_stands_on_the_page(browser: Browser, tmp_path: Path) -> None:
    domain = Domain(sources=[Tickets()], deadline=20)
    with open_folder(tmp_path, domain=domain) as graph:
        asked = [HumanMessage("Why does the printer jam?")]
        graph.invoke(DomainInput(messages=asked, document={}), THREAD)
        with open_page(browser, graph) as page:
            page.locator("[data-id=m2]").click()
            chosen = page.get_by_role("region", name="Chosen from your data")
            expect(chosen.locator("li")).to_have_text(["ticket Printer jams ticket_T-7"])
