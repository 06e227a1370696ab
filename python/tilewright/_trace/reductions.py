"""Reductions of rows: dot, norm, sum, any, ..., written out element by element."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from . import arithmetic
from .expr import BOOL, Expr, call, cast, number
from .functions import FUNCTIONS, convert
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


def reduce(name: str, x: Any, *, dim: Any = None, axis: Any = None, order: Any = 2) -> Any:
    """name(x, dim): over all dimensions where none is given. order: of norms."""
    x = lift(x)
    if isinstance(x, Expr):
        return cast(x, BOOL) if name in ("any", "all") else FUNCTIONS["abs"](x) if "norm" in name else x
    if "norm" in name and order not in (2, 2.0, None, "fro"):
        refuse(f"norms of order {order} are not translated", "write the sum of abs(x) ** p")
    dim = axis if dim is None else dim
    if dim is not None and not isinstance(dim, int):
        refuse(f"a mod reduces the dimensions {dim!r}", "reduce one dimension, or all of them")
    if dim is not None and not -x.ndim <= dim < x.ndim:
        refuse(f"a mod reduces dimension {dim} of {x.ndim}", "check the number")
    if x.ndim == 1:
        return REDUCTIONS[name](x)
    if dim is None:
        return reduce(name, Row(_flat(x)), order=order)
    dim = dim % x.ndim
    return REDUCTIONS[name](x) if dim == 0 else x.map(lambda row: reduce(name, row, dim=dim - 1))


def _flat(row: Row) -> List[Any]:
    return [item for part in row for item in (_flat(part) if isinstance(part, Row) else (part,))]


def _extreme(name: str) -> Callable[..., Any]:
    """max and min: of two values, or of a row."""

    def run(x: Any, dim: Any = None, *, axis: Any = None) -> Any:
        if dim is not None and not isinstance(dim, (int, tuple, list)):
            return apply(lambda a, b: arithmetic.extremum(name, a, b), x, dim)
        return reduce(name, x, dim=dim, axis=axis)

    return run


def _summed(name: str) -> Callable[..., Any]:
    """sum, mean and prod: conditions count as numbers."""

    def run(x: Any, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Any:
        x = unary(number, x) if dtype is None else convert(x, dtype=dtype)
        return reduce(name, x, dim=dim, axis=axis)

    return run


def _reduction(name: str) -> Callable[..., Any]:
    if name in ("max", "min"):
        return _extreme(name)
    if name in ("sum", "mean", "prod"):
        return _summed(name)
    if "norm" in name:
        return lambda x, ord=2, dim=None, *, p=None, axis=None: reduce(
            name, x, dim=dim, axis=axis, order=ord if p is None else p
        )
    return lambda x, dim=None, *, axis=None: reduce(name, x, dim=dim, axis=axis)


for _name in REDUCTIONS:
    if _name not in FUNCTIONS:
        FUNCTIONS[_name] = _reduction(_name)


def _dot(a: Any, b: Any) -> Any:
    return _sum(apply(arithmetic.multiply, unary(number, a), unary(number, b)))


def _matmul(a: Any, b: Any) -> Any:
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
