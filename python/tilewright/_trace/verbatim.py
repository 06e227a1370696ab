"""C++ that a user wrote, as a value among traced ones."""

from __future__ import annotations

import re
from typing import Any

from .._error import Error
from .expr import Expr

# Comments, and literals that may hold brackets. A line that ends in a backslash goes on.
_PARTS = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
_CLOSES = {")": "(", "]": "[", "}": "{"}


def without_comments(code: str) -> str:
    return _PARTS.sub(lambda found: " " if found[0].startswith(("//", "/*")) else found[0], code)


def require_balanced(code: str) -> None:
    """Refuses brackets that would close, or leave open, those of the text around the snippet."""
    opened = []
    for mark in _PARTS.sub(" ", code):
        if mark in "([{":
            opened.append(mark)
        elif mark in _CLOSES and (not opened or opened.pop() != _CLOSES[mark]):
            raise Error("snippet", f"{mark} closes nothing in {code!r}", "each C++ string is an expression, or a body")
    if opened:
        raise Error(
            "snippet", f"{opened[-1]} is never closed in {code!r}", "each C++ string is an expression, or a body"
        )


def verbatim(snippet: Any, kind: str) -> Expr:
    """A snippet's value: an expression in brackets, or a body as a lambda that is called."""
    code = without_comments(getattr(snippet, "code", snippet)).strip()
    require_balanced(code)
    if not code:
        raise Error("snippet", "a C++ string among the mods is empty", "leave it out")
    is_body = ";" in code or re.match(r"\{|(if|for|while|do|switch|return)\b", code)
    text = f"[&]() -> {kind} {{ {code} }}()" if is_body else f"({code})"
    return Expr(kind, "symbol", (text,))
