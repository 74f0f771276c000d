"""Everything that is generated, in an order in which nothing comes before what it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from scripts.generate import (
    api_page,
    boundary_figures,
    catalogues,
    cli_page,
    examples,
    graph_picture,
    inspector_page,
    licences_page,
    memory_client,
    page_types,
    recall_figures,
    sample,
    sample_pages,
    settings_page,
)
from scripts.generate.files import Generated, make_page, replace_part


def list_quick() -> Iterator[Generated]:
    """What is compared with the code in seconds."""
    yield make_page("ui/src/wire.ts", lambda _: page_types.write_types())
    yield Generated(inspector_page.PATH, inspector_page.is_current, inspector_page.build)
    yield make_page(memory_client.DOCUMENT, lambda _: memory_client.write_document())
    yield Generated(memory_client.TYPES, memory_client.is_current, memory_client.build)
    yield from catalogues.list_compiled()
    yield Generated(examples.PACKED, examples.is_current, examples.write)
    yield make_page("docs/reference/settings.md", settings_page.fill_page)
    yield make_page(".env.example", settings_page.fill_example)
    yield make_page("docs/reference/api.md", api_page.fill_contents)
    for area in api_page.AREAS:
        yield make_page(f"docs/reference/api/{area}.md", partial(api_page.fill_page, area))
    yield make_page("docs/reference/cli.md", lambda _: cli_page.make_page())
    yield make_page("docs/reference/licences.md", licences_page.make_page)
    yield make_page("docs/research/recall.md", recall_figures.fill_page)
    yield make_page(
        "docs/research/boundaries.md",
        lambda page: replace_part(page, "figures", boundary_figures.list_figures()),
    )
    yield Generated(graph_picture.PATH, graph_picture.is_current, graph_picture.draw)


def list_slow() -> Iterator[Generated]:
    """What takes half a minute to compare."""
    yield Generated(sample.PACKED, sample.is_current, sample.write)
    yield from sample_pages.list_pages()
