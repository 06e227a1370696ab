"""Rows of values, and functions of values that may be numbers, rows or captured arrays."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

from .expr import Expr, call, literal
from .refuse import refuse

_LONGEST_CHAIN = 32
LONGEST_ROW = 512  # a longer one makes a snippet that no compiler likes


class Row:
    """A row of a captured array, or of values that a mod stacks: its operations are written out, element by element."""

    __hash__ = object.__hash__

    def __init__(self, items: List[Any]) -> None:
        if len(items) > LONGEST_ROW:
            refuse(
                f"a mod reads a row of {len(items)} elements for one score, which is written out in the kernel; "
                f"{LONGEST_ROW} is the most",
                "compute what the row is needed for before the call, and index the result",
            )
        self.items = items

    @property
    def shape(self) -> Any:
        first = self.items[0] if self.items else None
        return (len(self.items), *(first.shape if isinstance(first, Row) else ()))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            head, rest = index[0], index[1:]
            picked = self[head]
            if not rest:
                return picked
            return Row([item[rest] for item in picked]) if isinstance(head, slice) else picked[rest]
        if isinstance(index, Expr):
            refuse(
                "a mod indexes a row of values by what is only known in the kernel", "index the tensor that holds it"
            )
        return Row(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from .dispatch import method
        from .extremes import method_of_row

        return method_of_row(self, name) if name in ("max", "min") else method(self, name)

    def map(self, function: Callable[[Any], Any]) -> "Row":
        return Row([function(item) for item in self.items])

    def fold(self, function: Callable[[Expr, Expr], Expr]) -> Any:
        """Long rows in halves, as a chain of hundreds is too deep a tree."""
        if not self.items:
            refuse("a mod reduces a row without elements", "check its length")
        if len(self) > _LONGEST_CHAIN:
            half = len(self) // 2
            return apply(function, Row(self.items[:half]).fold(function), Row(self.items[half:]).fold(function))
        total = self.items[0]
        for item in self.items[1:]:
            total = apply(function, total, item)
        return total

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Expr.__torch_function__(function, types, args, kwargs)

    __array_ufunc__ = Expr.__array_ufunc__
    __array_function__ = Expr.__array_function__


def lift(value: Any) -> Any:
    """An Expr or a Row of what a mod computes with."""
    if isinstance(value, (Expr, Row)):
        return value
    if isinstance(value, (bool, int, float)):
        return literal(value)
    from .captured import Captured

    if isinstance(value, Captured):
        return value.value()
    if isinstance(value, (list, tuple)):
        return Row([lift(item) for item in value])
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 0) == 0:
        return literal(item())  # a numpy scalar, or a 0-d tensor that the mod has made
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Captured(value).value()
    refuse(f"a mod computes with a {type(value).__name__}", "use numbers and tensors")


def apply(function: Callable[[Expr, Expr], Expr], a: Any, b: Any) -> Any:
    """function(a, b), element by element where one of them is a row."""
    a, b = lift(a), lift(b)
    if isinstance(a, Row) and isinstance(b, Row):
        if a.ndim != b.ndim:
            return a.map(lambda x: apply(function, x, b)) if a.ndim > b.ndim else b.map(lambda y: apply(function, a, y))
        if len(a) != len(b) and 1 not in (len(a), len(b)):
            refuse(f"a mod combines rows of {len(a)} and {len(b)} elements", "give them one length")
        n = max(len(a), len(b))
        pairs = zip(a.items * (n if len(a) == 1 else 1), b.items * (n if len(b) == 1 else 1))
        return Row([apply(function, x, y) for x, y in pairs])
    if isinstance(a, Row):
        return a.map(lambda x: apply(function, x, b))
    if isinstance(b, Row):
        return b.map(lambda y: apply(function, a, y))
    return function(a, b)


def unary(function: Callable[[Expr], Any], x: Any) -> Any:
    x = lift(x)
    return x.map(lambda item: unary(function, item)) if isinstance(x, Row) else function(x)


def root_of_squares(row: Row) -> Expr:
    from . import arithmetic

    squares = row.map(lambda x: apply(arithmetic.multiply, x, x))
    return call("sqrt", "float", squares.fold(arithmetic.add))


def _install() -> None:
    from .operators import BINARY, UNARY, give_divmod, install

    install()
    give_divmod(Row)
    for name, function in BINARY.items():
        setattr(Row, f"__{name}__", lambda self, other, function=function: apply(function, self, other))
        setattr(Row, f"__r{name}__", lambda self, other, function=function: apply(function, other, self))
    for name, one in UNARY.items():
        setattr(Row, f"__{name}__", lambda self, one=one: unary(one, self))


_install()
