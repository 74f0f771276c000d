"""Tests may connect to this machine alone."""

from __future__ import annotations

import socket

import pytest


def _is_root(plugin: object) -> bool:
    return hasattr(plugin, "_reached_out")


def test_other_machines_are_out_of_reach(request: pytest.FixtureRequest) -> None:
    (root,) = (plugin for plugin in request.config.pluginmanager.get_plugins() if _is_root(plugin))
    with pytest.raises(ConnectionRefusedError, match="may not reach out"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(ConnectionRefusedError, match="may not reach out"):
        socket.getaddrinfo("example.invalid", 80)
    assert root._reached_out == ["192.0.2.1", "example.invalid"]
    root._reached_out.clear()
