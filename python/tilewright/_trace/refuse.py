"""Refusals: what a mod does that no kernel can, at the user's own line, with the form to write instead."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType
from typing import NoReturn, Optional, Tuple

from .._error import Error

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple(os.sep + name + os.sep for name in ("torch", "numpy", "jax", "functools.py"))


def _is_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    inside_package = file.startswith(_OURS + os.sep) and os.sep + "tests" + os.sep not in file
    return not inside_package and not any(part in file for part in _LIBRARIES) and not file.endswith("functools.py")


def _column(frame: FrameType) -> int:
    positions = getattr(frame.f_code, "co_positions", None)  # Python 3.11
    if positions is None:
        return 0
    for index, (_, _, column, _) in enumerate(positions()):
        if index * 2 == frame.f_lasti:
            return 0 if column is None else column + 1
    return 0


def users_place() -> Optional[Tuple[str, int, int, str]]:
    """File, line, column and text of the innermost frame that is the user's."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and not _is_users(frame):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    return file, line, _column(frame), linecache.getline(file, line).rstrip("\n")


def place_of(function: object) -> Optional[Tuple[str, int, int, str]]:
    """Where a Python function begins; None of other callables."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    file, line = code.co_filename, code.co_firstlineno
    return file, line, 0, linecache.getline(file, line).rstrip("\n")


def place_of_failure(error: BaseException) -> Optional[Tuple[str, int, int, str]]:
    """The last line of the user that an exception came through."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if _is_users(trace.tb_frame):
            found = trace
        trace = trace.tb_next
    if found is None:
        return None
    file, line = found.tb_frame.f_code.co_filename, found.tb_lineno
    return file, line, 0, linecache.getline(file, line).rstrip("\n")


MAY_CALL = 'docs/python.md, "How mods are read", lists what mods may call'


def refuse(message: str, form: str) -> NoReturn:
    """Ends the trace. `form` says what to write."""
    raise Error("snippet", message, form, users_place())
