"""Names for programs that serve sessions to people, beside those of `topicloom`.

The command, the page and the endpoint of `topicloom-app` use it, and so may other programs. Each
name is loaded when it is first used; `hosting.pyi` says where it is.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub("topicloom", __file__)
