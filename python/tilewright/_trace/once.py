"""Traces that read what no check sees, such as the contents of an array: they hold for one call."""

from __future__ import annotations

import threading
from typing import Any

_running = threading.local()


def once() -> None:
    """Says so of the trace that runs in this thread."""
    capture = getattr(_running, "capture", None)
    if capture is not None:
        capture.lasting = False


class running:
    """While a mod runs; `capture` has the attribute `lasting`."""

    def __init__(self, capture: Any) -> None:
        self._capture, self._before = capture, None

    def __enter__(self) -> None:
        self._before = getattr(_running, "capture", None)
        _running.capture = self._capture

    def __exit__(self, *_: Any) -> None:
        _running.capture = self._before
