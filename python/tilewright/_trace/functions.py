"""The functions that mods may call, by their names in torch and numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import arithmetic
from .expr import BOOL, FLOAT, INT, LONG, Expr, call, cast, compare, is_literal, literal, select
from .refuse import refuse
from .values import Row, apply, lift, root_of_squares, unary

FUNCTIONS: Dict[str, Callable[..., Any]] = {}


def _also(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[name] = function
        return function

    return keep


def _mathematical(name: str, of_snippets: str) -> None:
    FUNCTIONS[name] = lambda x: unary(lambda item: call(of_snippets, FLOAT, item), x)


for _name in "tanh exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan erf erfc".split():
    _mathematical(_name, _name)
_mathematical("special_erf", "erf")
_mathematical("special_erfc", "erfc")
_mathematical("special_expm1", "expm1")
_mathematical("special_log1p", "log1p")
_mathematical("special_exp2", "exp2")


def _binary(function: Callable[[Expr, Expr], Expr], *names: str) -> None:
    for name in names:
        FUNCTIONS[name] = lambda a, b: apply(function, a, b)


_binary(arithmetic.multiply, "mul", "multiply")
_binary(arithmetic.divide, "true_divide")
_binary(arithmetic.floor_divide, "floor_divide")
_binary(arithmetic.remainder, "remainder", "mod")
_binary(arithmetic.power, "pow", "power", "float_power")
_binary(lambda a, b: arithmetic.extremum("max", a, b), "maximum", "fmax", "clamp_min")
_binary(lambda a, b: arithmetic.extremum("min", a, b), "minimum", "fmin", "clamp_max")
_binary(lambda a, b: arithmetic.bitwise("&", a, b), "bitwise_and")
_binary(lambda a, b: arithmetic.bitwise("|", a, b), "bitwise_or")
_binary(lambda a, b: arithmetic.bitwise("^", a, b), "bitwise_xor")
_binary(lambda a, b: arithmetic.bitwise("&", cast(a, BOOL), cast(b, BOOL)), "logical_and")
_binary(lambda a, b: arithmetic.bitwise("|", cast(a, BOOL), cast(b, BOOL)), "logical_or")
_binary(lambda a, b: arithmetic.bitwise("^", cast(a, BOOL), cast(b, BOOL)), "logical_xor")
_binary(lambda a, b: arithmetic.shift("<<", a, b), "bitwise_left_shift", "left_shift")
_binary(lambda a, b: arithmetic.shift(">>", a, b), "bitwise_right_shift", "right_shift")


def _comparison(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: compare(op, a, b)


for _op, _names in {
    "<": "lt less", "<=": "le less_equal", ">": "gt greater", ">=": "ge greater_equal", "==": "eq equal", "!=": "ne not_equal",
}.items():  # fmt: skip
    _binary(_comparison(_op), *_names.split())

FUNCTIONS["neg"] = FUNCTIONS["negative"] = lambda x: unary(arithmetic.negative, x)
FUNCTIONS["abs"] = FUNCTIONS["absolute"] = FUNCTIONS["fabs"] = lambda x: unary(arithmetic.absolute, x)
FUNCTIONS["bitwise_not"] = FUNCTIONS["invert"] = lambda x: unary(arithmetic.invert, x)
FUNCTIONS["logical_not"] = lambda x: unary(lambda item: arithmetic.invert(cast(item, BOOL)), x)
FUNCTIONS["square"] = lambda x: apply(arithmetic.multiply, x, x)
FUNCTIONS["reciprocal"] = lambda x: apply(arithmetic.divide, 1.0, x)
FUNCTIONS["positive"] = FUNCTIONS["item"] = lambda x: lift(x)
for (
    _name
) in "unsqueeze squeeze view reshape detach contiguous clone expand flatten cpu cuda expand_as requires_grad".split():
    FUNCTIONS[_name] = lambda x, *_, **__: lift(x)


@_also("add")
def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    return apply(arithmetic.add, a, b if alpha == 1 else apply(arithmetic.multiply, alpha, b))


@_also("sub", "subtract")
def subtract(a: Any, b: Any, alpha: Any = 1) -> Any:
    return apply(arithmetic.subtract, a, b if alpha == 1 else apply(arithmetic.multiply, alpha, b))


@_also("rsub")
def reflected_subtract(a: Any, b: Any) -> Any:
    return apply(arithmetic.subtract, b, a)


@_also("div", "divide")
def divide(a: Any, b: Any, rounding_mode: Optional[str] = None) -> Any:
    ways = {"floor": arithmetic.floor_divide, "trunc": arithmetic.truncated_divide}
    return apply(ways.get(rounding_mode or "", arithmetic.divide), a, b)


@_also("fmod")
def truncated_remainder(a: Any, b: Any) -> Any:
    quotient = apply(arithmetic.truncated_divide, a, b)
    return apply(arithmetic.subtract, a, apply(arithmetic.multiply, quotient, b))


@_also("floor")
def floor(x: Any) -> Any:
    return unary(lambda item: call("floor", FLOAT, item) if item.kind == FLOAT else item, x)


@_also("ceil")
def ceil(x: Any) -> Any:
    return unary(lambda item: call("ceil", FLOAT, item) if item.kind == FLOAT else item, x)


@_also("trunc", "fix")
def trunc(x: Any) -> Any:
    return unary(lambda item: arithmetic.truncated_divide(item, literal(1.0)) if item.kind == FLOAT else item, x)


@_also("round", "rint")
def round_to_even(x: Any, *_: Any, **__: Any) -> Any:
    refuse("round() is not among a snippet's functions", "write torch.floor(x + 0.5)")


@_also("where")
def where(condition: Any, x: Any, y: Any) -> Any:
    rows = [value for value in map(lift, (condition, x, y)) if isinstance(value, Row)]
    if rows:
        n = len(rows[0])
        columns = [value.items if isinstance(value, Row) else [value] * n for value in map(lift, (condition, x, y))]
        return Row([where(*items) for items in zip(*columns)])
    return select(cast(lift(condition), BOOL), lift(x), lift(y))


@_also("masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return where(mask, value, x)


@_also("clamp", "clip")
def clamp(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if low is not None:
        x = FUNCTIONS["maximum"](x, low)
    return lift(x) if high is None else FUNCTIONS["minimum"](x, high)


@_also("sign", "sgn")
def sign(x: Any) -> Any:
    return unary(lambda item: Expr(item.kind, "call", ("sign", item), None if item.kind == FLOAT else -1), x)


@_also("lerp")
def lerp(a: Any, b: Any, weight: Any) -> Any:
    return add(a, apply(arithmetic.multiply, weight, subtract(b, a)))


@_also("isin")
def isin(x: Any, values: Any) -> Any:
    row = lift(values)
    if not isinstance(row, Row):
        return FUNCTIONS["eq"](x, row)
    hits = row.map(lambda value: FUNCTIONS["eq"](x, value))
    return hits.fold(lambda a, b: arithmetic.bitwise("|", a, b)) if len(row) else literal(False)


def dtype_kind(dtype: Any) -> str:
    """A kind for a dtype of torch or numpy, or for bool, int and float."""
    text = getattr(dtype, "__name__", str(dtype))
    if "bool" in text:
        return BOOL
    if "float" in text or "half" in text or "double" in text:
        return FLOAT
    if "64" in text or text == "long" or "uint32" in text:
        return LONG
    if "int" in text or "short" in text:
        return INT
    refuse(f"a mod converts to {text}", "convert to a float, an integer or bool")


@_also("to", "type", "astype", "asarray", "array")
def convert(x: Any, *args: Any, dtype: Any = None, **_: Any) -> Any:
    for arg in args:
        if isinstance(arg, Expr):
            dtype = arg.dtype
        elif (
            "dtype" in type(arg).__name__.lower() or isinstance(arg, type) or (isinstance(arg, str) and "Tensor" in arg)
        ):
            dtype = arg
    return lift(x) if dtype is None else unary(lambda item: cast(item, dtype_kind(dtype)), x)


@_also("type_as")
def type_as(x: Any, other: Any) -> Any:
    return unary(lambda item: cast(item, lift(other).kind), x)


def _conversion(kind: str) -> Callable[..., Any]:
    return lambda x: unary(lambda item: cast(item, kind), x)


for _name, _kind in {
    "float": FLOAT, "double": FLOAT, "half": FLOAT, "bfloat16": FLOAT, "int": INT, "short": INT, "long": LONG, "bool": BOOL,
    "float32": FLOAT, "float64": FLOAT, "int32": INT, "int64": LONG,
}.items():  # fmt: skip
    FUNCTIONS[_name] = _conversion(_kind)


def _filled(x: Any, value: Any, dtype: Any) -> Expr:
    value = lift(value)
    return cast(value, lift(x).kind if dtype is None else dtype_kind(dtype))


FUNCTIONS["zeros_like"] = FUNCTIONS["new_zeros"] = lambda x, *_, dtype=None, **__: _filled(x, 0, dtype)
FUNCTIONS["ones_like"] = FUNCTIONS["new_ones"] = lambda x, *_, dtype=None, **__: _filled(x, 1, dtype)
FUNCTIONS["full_like"] = lambda x, value, dtype=None, **_: _filled(x, value, dtype)
FUNCTIONS["new_full"] = lambda x, size, value, dtype=None, **_: _filled(x, value, dtype)
FUNCTIONS["new_tensor"] = lambda x, value, dtype=None, **_: _filled(x, value, dtype)


def is_zero(x: Expr) -> bool:
    return is_literal(x) and x.args[0] == 0


__all__ = ["FUNCTIONS", "INT", "root_of_squares"]
