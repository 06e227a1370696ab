"""A value that exists only in the kernel: what a mod computes with while it is traced."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Optional, Tuple

from .._error import Error
from .refuse import MAY_CALL, refuse

BOOL, INT, LONG, FLOAT = "bool", "int", "long long", "float"
_RANK = {BOOL: 0, INT: 1, LONG: 2, FLOAT: 3}
_INT_MAX = 2**31 - 1
_FLOAT_MAX = 3.4028235677973366e38  # values from here on round to infinity


class Expr:
    """A tree: op and args. Integers know bounds, so that floor division and indices of what is never negative are
    plain."""

    __slots__ = ("kind", "op", "args", "low", "high")
    shape: Tuple[int, ...] = ()
    ndim = 0

    def __init__(
        self, kind: str, op: str, args: Tuple[Any, ...], low: Optional[int] = None, high: Optional[int] = None
    ):
        self.kind, self.op, self.args, self.low, self.high = kind, op, args, low, high
        if kind == BOOL:
            self.low, self.high = 0, 1

    def __hash__(self) -> int:
        refuse(
            "a mod looks up a value in a set or dict that is only known in the kernel",
            "write (x == 1) | (x == 2), or index a tensor",
        )

    def __repr__(self) -> str:
        from .printing import Printer

        return f"<{self.kind} {Printer().expression(self)}>"

    @property
    def never_negative(self) -> bool:
        return self.low is not None and self.low >= 0

    # What Python asks only of values that it has.
    def __bool__(self) -> bool:
        refuse(
            "a mod decides in Python on a value that is only known in the kernel",
            "write torch.where(condition, x, y) for `if`, & | ~ for `and`, `or`, `not`, (a <= x) & (x < b) for "
            "`a <= x < b`, torch.minimum and torch.maximum for min and max",
        )

    def __index__(self) -> int:
        refuse(
            "a mod uses a value that is only known in the kernel as a Python integer",
            "index a tensor in place of a list, and write a loop over numbers that Python knows",
        )

    def __int__(self) -> int:
        refuse("int() needs a value, but this one is only known in the kernel", "write x.to(torch.int32), or x // 1")

    def __float__(self) -> float:
        refuse(
            "float() needs a value, but this one is only known in the kernel",
            "write x.to(torch.float32), and torch.exp(x) for math.exp(x)",
        )

    def __iter__(self) -> Any:
        refuse("a mod iterates over a value that is one number in the kernel", "a mod computes one score at a time")

    def __len__(self) -> int:
        refuse("a mod asks for the length of one number", "a mod computes one score at a time")

    def __round__(self, digits: Any = None) -> Any:
        refuse("round() is not among a snippet's functions", "write torch.floor(x + 0.5)")

    def __complex__(self) -> complex:
        refuse("a mod computes with complex numbers", "use real numbers")

    def __floor__(self) -> Any:
        return self.floor()

    def __ceil__(self) -> Any:
        return self.ceil()

    def __trunc__(self) -> Any:
        return self.trunc()

    def __setitem__(self, key: Any, value: Any) -> None:
        refuse("a mod writes into a tensor", "return the value; torch.where(condition, x, y) chooses")

    @property
    def dtype(self) -> Any:
        import sys

        name = {BOOL: "bool", INT: "int32", LONG: "int64", FLOAT: "float32"}[self.kind]
        torch = sys.modules.get("torch")
        if torch is not None:
            return getattr(torch, name)
        import numpy

        return numpy.dtype(name)

    @property
    def device(self) -> Any:
        import sys

        torch = sys.modules.get("torch")
        return torch.device("cpu") if torch is not None else "cpu"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from .dispatch import method

        return method(self, name)

    def __getitem__(self, index: Any) -> Any:
        if index is None or index is Ellipsis or index == ():
            return self
        refuse("a mod indexes one number", "index the tensor that holds it, with all its indices")

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .dispatch import call

        return call(getattr(function, "__name__", str(function)), args, kwargs or {}, "torch")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        from .dispatch import call

        if method != "__call__":
            refuse(f"np.{ufunc.__name__}.{method} is not among a snippet's functions", MAY_CALL)
        return call(ufunc.__name__, args, kwargs, "np")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .dispatch import call

        return call(function.__name__, args, kwargs, "np")


def literal(value: Any) -> Expr:
    """A number that Python knows."""
    if isinstance(value, bool):
        return Expr(BOOL, "literal", (value,))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            refuse(f"{value} does not fit 64 bits", "write a float")
        return Expr(INT if -_INT_MAX <= value <= _INT_MAX else LONG, "literal", (value,), value, value)
    if math.isnan(value):
        refuse("a mod computes with NaN", 'write -float("inf") for what attention must not see')
    if abs(value) >= _FLOAT_MAX:
        value = math.copysign(math.inf, value)
    elif 0 < abs(value) < 1e-45:
        value = 0.0
    return Expr(FLOAT, "literal", (float(value),))


def is_literal(x: Expr) -> bool:
    return x.op == "literal"


def symbol(name: str, kind: str, low: Optional[int] = None, high: Optional[int] = None) -> Expr:
    """score, b, h, q_idx, kv_idx."""
    return Expr(kind, "symbol", (name,), low, high)


def scalar(name: str, default: Any = None) -> Expr:
    """A number that each call gives (`scalars={name: value}`), `default` where it does not. Changing it compiles
    nothing. Use it in a mod like a number: `q_idx - kv_idx < tw.scalar("window", 256)`."""
    if not isinstance(name, str) or not name.isidentifier():
        raise Error("usage", f"tw.scalar has the name {name!r}", "pass a name of letters, digits and _")
    if default is not None:
        plain = default.item() if hasattr(default, "item") and not getattr(default, "ndim", 0) else default
        if isinstance(plain, bool) or not isinstance(plain, (int, float)):
            raise Error("usage", f'tw.scalar("{name}") has the default {default!r}', "pass a number, or none")
        default = plain
    kind = FLOAT if isinstance(default, float) else INT
    return Expr(kind, "scalar", (name, default))


def widest(*values: Expr) -> str:
    """The kind that C++ computes in; bools count as int."""
    return max((INT, *(value.kind for value in values)), key=_RANK.__getitem__)


def cast(x: Expr, kind: str) -> Expr:
    if x.kind == kind:
        return x
    if is_literal(x) and kind != BOOL:
        return literal(float(x.args[0]) if kind == FLOAT else int(x.args[0]))
    if kind == BOOL:
        return Expr(BOOL, "!=", (x, literal(0 if x.kind != FLOAT else 0.0)))
    whole = kind != FLOAT and x.kind != FLOAT
    return Expr(kind, "cast", (x,), x.low if whole else None, x.high if whole else None)


def number(x: Expr) -> Expr:
    """A bool as an int."""
    return cast(x, INT) if x.kind == BOOL else x


def fold(function: Callable[..., Any], *values: Expr) -> Optional[Expr]:
    """The result where Python knows all values."""
    if not all(is_literal(value) for value in values):
        return None
    try:
        result = function(*(value.args[0] for value in values))
    except ArithmeticError:
        return None
    return literal(result) if isinstance(result, (bool, int, float)) else None


def compare(op: str, a: Expr, b: Expr) -> Expr:
    known = fold(
        {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}.get(
            op, operator.ne
        ),
        a,
        b,
    )
    if known is not None:
        return known
    same = a.kind == BOOL and b.kind == BOOL
    return Expr(BOOL, op, (a, b) if same else (number(a), number(b)))


def select(condition: Expr, x: Expr, y: Expr) -> Expr:
    if is_literal(condition):
        return x if condition.args[0] else y
    kind = x.kind if x.kind == y.kind else widest(x, y)
    low = None if x.low is None or y.low is None else min(x.low, y.low)
    high = None if x.high is None or y.high is None else max(x.high, y.high)
    return Expr(kind, "?", (cast(condition, BOOL), cast(x, kind), cast(y, kind)), low, high)


def call(name: str, kind: str, *args: Expr, low: Optional[int] = None, high: Optional[int] = None) -> Expr:
    """A function of snippets; its arguments are of `kind`."""
    return Expr(kind, "call", (name, *(cast(arg, kind) for arg in args)), low, high)
