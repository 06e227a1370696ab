"""Python's operators on values of the kernel."""

from __future__ import annotations

from typing import Any, Callable

from . import arithmetic
from .expr import Expr, compare

Binary = Callable[[Expr, Expr], Expr]


def _comparison(op: str) -> Binary:
    return lambda a, b: compare(op, a, b)


BINARY: "dict[str, Binary]" = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "pow": arithmetic.power,
    "and": lambda a, b: arithmetic.bitwise("&", a, b),
    "or": lambda a, b: arithmetic.bitwise("|", a, b),
    "xor": lambda a, b: arithmetic.bitwise("^", a, b),
    "lshift": lambda a, b: arithmetic.shift("<<", a, b),
    "rshift": lambda a, b: arithmetic.shift(">>", a, b),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "eq": _comparison("=="),
    "ne": _comparison("!="),
}
UNARY: "dict[str, Callable[[Expr], Expr]]" = {
    "neg": arithmetic.negative,
    "pos": lambda a: a,
    "abs": arithmetic.absolute,
    "invert": arithmetic.invert,
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def give_divmod(kind: type) -> None:
    setattr(kind, "__divmod__", lambda self, other: (self // other, self % other))
    setattr(kind, "__rdivmod__", lambda self, other: (other // self, other % self))


def _give(name: str, function: Binary) -> None:
    from .values import apply

    def forward(self: Any, other: Any) -> Any:
        return apply(function, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return apply(function, other, self)

    setattr(Expr, f"__{name}__", forward)
    if name not in COMPARISONS:
        setattr(Expr, f"__r{name}__", reflected)


def install() -> None:
    """Gives Expr its operators, once."""
    for name, function in BINARY.items():
        _give(name, function)
    for name, unary in UNARY.items():
        setattr(Expr, f"__{name}__", lambda self, unary=unary: unary(self))
    give_divmod(Expr)
    setattr(Expr, "__matmul__", lambda self, other: BINARY["mul"](self, other))
