"""Reductions of rows: dot, norm, sum, any, ..., written out element by element."""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import arithmetic
from .expr import BOOL, Expr, call, cast
from .functions import FUNCTIONS
from .refuse import refuse
from .values import Row, apply, lift, unary

Reduction = Callable[[Row], Any]


def _sum(row: Row) -> Any:
    return row.fold(arithmetic.add)


def _truth(op: str) -> Reduction:
    return lambda row: unary(lambda x: cast(x, BOOL), row).fold(lambda a, b: arithmetic.bitwise(op, a, b))


def _mean(row: Row) -> Any:
    return apply(arithmetic.divide, _sum(row), len(row))


def _norm(row: Row) -> Any:
    return unary(lambda x: call("sqrt", "float", x), _sum(row.map(lambda x: apply(arithmetic.multiply, x, x))))


REDUCTIONS: Dict[str, Reduction] = {
    "sum": _sum,
    "mean": _mean,
    "prod": lambda row: row.fold(arithmetic.multiply),
    "any": _truth("|"),
    "all": _truth("&"),
    "max": lambda row: row.fold(lambda a, b: arithmetic.extremum("max", a, b)),
    "min": lambda row: row.fold(lambda a, b: arithmetic.extremum("min", a, b)),
    "norm": _norm,
}
for _name, _same in {
    "amax": "max", "amin": "min", "vector_norm": "norm", "linalg_norm": "norm", "linalg_vector_norm": "norm",
}.items():  # fmt: skip
    REDUCTIONS[_name] = REDUCTIONS[_same]


def reduce(name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    """name(x, dim): over all dimensions where none is given."""
    x = lift(x)
    if isinstance(x, Expr):
        return cast(x, BOOL) if name in ("any", "all") else FUNCTIONS["abs"](x) if "norm" in name else x
    order = kwargs.get("ord", kwargs.get("p", args[0] if "norm" in name and args else 2))
    if "norm" in name and order not in (2, 2.0, None, "fro"):
        refuse(f"norms of order {order} are not translated", "write the sum of abs(x) ** p")
    dim = kwargs.get("dim", kwargs.get("axis", args[0] if args and "norm" not in name else None))
    if x.ndim == 1:
        return REDUCTIONS[name](x)
    if dim is None:
        return reduce(name, Row([item for row in x for item in row]))
    dim = dim % x.ndim
    return REDUCTIONS[name](x) if dim == 0 else x.map(lambda row: reduce(name, row, dim=dim - 1))


for _name in REDUCTIONS:
    if _name not in FUNCTIONS:
        FUNCTIONS[_name] = lambda x, *args, name=_name, **kwargs: reduce(name, x, *args, **kwargs)


def _dot(a: Any, b: Any, **_: Any) -> Any:
    return _sum(apply(arithmetic.multiply, a, b))


def _matmul(a: Any, b: Any, **_: Any) -> Any:
    a, b = lift(a), lift(b)
    if a.ndim == 1 and b.ndim == 1:
        return _dot(a, b)
    if a.ndim == 2 and b.ndim == 1:
        return a.map(lambda row: _dot(row, b))
    refuse("a mod multiplies matrices", "multiply them before the call, and index the result")


def _stack(rows: Any, *_: Any, **__: Any) -> Any:
    return Row([lift(item) for item in rows])


FUNCTIONS["dot"] = FUNCTIONS["vdot"] = FUNCTIONS["inner"] = _dot
FUNCTIONS["matmul"] = FUNCTIONS["mv"] = _matmul
FUNCTIONS["stack"] = _stack
setattr(Row, "__matmul__", _matmul)
