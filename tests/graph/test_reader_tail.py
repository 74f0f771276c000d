"""What readers are shown of the conversation: what is in no topic yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import scaled
from sessions import chatter, last_receipt, open_graph, tell, thread

from topicloom.testing import SteadyReader, fake_roles

CONFIG = thread()


@pytest.mark.slow
def test_it_begins_where_the_last_split_ended(tmp_path: Path) -> None:
    reader = SteadyReader()
    graph = open_graph(tmp_path, fake_roles(reader=reader), window=2_000)
    splits, begins = 0, list[int]()
    count = scaled(150)
    for number in range(1, count + 1):
        tell(graph, CONFIG, chatter("种花", number))
        receipt = last_receipt(tmp_path, graph, CONFIG)
        splits += bool(receipt.split)
        begins += [request.tail[0].seq for request in reader.requests]
        assert all(r.tail[-1].id == receipt.user for r in reader.requests)
        reader.requests.clear()
    assert splits > count // 35
    assert len(set(begins)) <= splits + 1
    assert begins == sorted(begins)
