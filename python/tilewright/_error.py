"""The one exception of the package."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence


# Hints of the library, as Python writes them.
_FORMS = (
    ("attention.bind({.buffers = ..., .scalars = ...})", "attention.bind(name=array, ...)"),
    ("Device::cpu() or Device::automatic()", 'device="cpu" or device="auto"'),
)


class Place(NamedTuple):
    """A position in a text that the caller wrote: a spec, a snippet, a Python file."""

    file: str
    line: int  # from 1; 0: the whole file
    column: int  # from 1; 0: the whole line
    excerpt: str  # the text of the line


class Error(Exception):
    """What went wrong. `str()` is the whole report, with the place and a caret.

    `code` is one of docs/troubleshooting.md's: "usage", "spec", "snippet", "tensor", "block_mask", "file", "device",
    "compiler", "missing_kernel", "memory", "disk", "internal". `hint` says what to do next; "" where nothing is known.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        place: Optional[Sequence[object]] = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(code, message, hint, place, notes)
        self.code = code
        self.message = message
        for cpp, python in _FORMS:
            hint = hint.replace(cpp, python)
        self.hint = hint
        self.place = None if place is None else Place(*place)  # type: ignore[arg-type]
        self.notes = list(notes)

    def __str__(self) -> str:
        from . import _core

        return _core.report(self.code, self.message, self.hint, self.place, self.notes)
