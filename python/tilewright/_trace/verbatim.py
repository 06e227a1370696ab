"""C++ that a user wrote, as a value among traced ones."""

from __future__ import annotations

from typing import Any

from .expr import Expr


def verbatim(snippet: Any, kind: str) -> Expr:
    """A snippet's value: an expression in brackets, or a body as a lambda that is called."""
    code = getattr(snippet, "code", snippet)
    is_body = ";" in code or code.lstrip().startswith(("{", "if", "for", "while", "do", "switch"))
    text = f"[&]() -> {kind} {{ {code} }}()" if is_body else f"({code})"
    return Expr(kind, "symbol", (text,))
