"""Names for the laboratory: parts of the package that it measures and trains.

Names may change with every release. Each is loaded when it is first used; `lab.pyi` says where it
is.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub("topicloom", __file__)
