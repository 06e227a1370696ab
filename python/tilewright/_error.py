"""The one exception of the package."""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional, Sequence


# Hints of the library, as Python writes them.
_FORMS = (
    ("attention.bind({.buffers = ..., .scalars = ...})", "attention.bind(name=array, ...)"),
    ("Device::cpu() or Device::automatic()", 'device="cpu" or device="auto"'),
    ("with .takes_block_mask = true", "with takes_block_mask=True"),
    ("from lists (mask_lists.hpp)", "from lists (BlockMask.from_kv_blocks)"),
    ("Sequences::q_offset, Sequences::kv_offset", "q_offset= and kv_offset= of attention.plan(...)"),
    ("attention.plan(shape, sequences, ...)", "attention.plan(q_begin, ...)"),
)
_SCALAR = re.compile(r'pass \.scalars = \{\{"(\w+)", X\}\} to bind\(\)')
_PADDED = re.compile(r"pad [\w, ]+ with zeros")  # the tensors of a hint


class SourceLocation(NamedTuple):
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
        hint = _SCALAR.sub(r'pass scalars={"\1": X} to the call, or \1=X to attention.bind()', hint)
        self.hint = hint
        self.place = None if place is None else SourceLocation(*place)  # type: ignore[arg-type]
        self.notes = list(notes)

    def renamed(self, names: Mapping[str, str]) -> "Error":
        """The same, where the arguments have other names; of "tensor", "usage" and "block_mask", and hints of "spec"."""
        pattern = re.compile(rf"\b({'|'.join(names)})\b(?![(\[])")

        def named(text: str) -> str:
            return pattern.sub(lambda found: names[found[0]], text)

        if self.code == "spec":
            hint = _PADDED.sub(lambda found: named(found[0]), self.hint)
            return Error("spec", self.message, hint, self.place, self.notes)
        if self.code not in ("tensor", "usage", "block_mask") or self.place is not None:
            return self
        return Error(self.code, named(self.message), named(self.hint), None, [named(note) for note in self.notes])

    def __str__(self) -> str:
        from . import _core

        return _core.report(self.code, self.message, self.hint, self.place, self.notes)
