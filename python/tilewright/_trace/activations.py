"""Activations and their parts, as torch.nn.functional has them."""

from __future__ import annotations

import functools
from typing import Any

from . import arithmetic
from .expr import FLOAT, Expr, call, cast, compare, literal, select
from .functions import FUNCTIONS
from .values import unary


def _sigmoid(x: Expr) -> Expr:
    return arithmetic.divide(
        literal(1.0), arithmetic.add(literal(1.0), call("exp", FLOAT, arithmetic.negative(cast(x, FLOAT))))
    )


def _softplus(x: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    scaled = arithmetic.multiply(cast(x, FLOAT), literal(beta)) if beta != 1 else cast(x, FLOAT)
    soft = call("log1p", FLOAT, call("exp", FLOAT, scaled))
    soft = arithmetic.divide(soft, literal(beta)) if beta != 1 else soft
    return select(compare(">", scaled, literal(float(threshold))), cast(x, FLOAT), soft)


def _gelu(x: Expr, approximate: str = "none") -> Expr:
    x = cast(x, FLOAT)
    if approximate == "tanh":
        cubic = arithmetic.multiply(arithmetic.multiply(arithmetic.multiply(literal(0.044715), x), x), x)
        inner = call("tanh", FLOAT, arithmetic.multiply(literal(0.7978845608028654), arithmetic.add(x, cubic)))
    else:
        inner = call("erf", FLOAT, arithmetic.multiply(x, literal(0.7071067811865476)))
    return arithmetic.multiply(arithmetic.multiply(literal(0.5), x), arithmetic.add(literal(1.0), inner))


def _relu(x: Expr) -> Expr:
    return arithmetic.extremum("max", x, literal(0.0 if x.kind == FLOAT else 0))


def _leaky_relu(x: Expr, negative_slope: float = 0.01) -> Expr:
    return select(compare(">", x, literal(0.0)), x, arithmetic.multiply(x, literal(float(negative_slope))))


def _elu(x: Expr, alpha: float = 1.0) -> Expr:
    return select(compare(">", x, literal(0.0)), x, arithmetic.multiply(literal(float(alpha)), call("expm1", FLOAT, x)))


def _log_sigmoid(x: Expr) -> Expr:
    return arithmetic.negative(_softplus(arithmetic.negative(x)))


def _hardtanh(x: Expr, min_val: float = -1.0, max_val: float = 1.0) -> Expr:
    return arithmetic.extremum("min", arithmetic.extremum("max", x, literal(float(min_val))), literal(float(max_val)))


def _sinh(x: Expr) -> Expr:
    return arithmetic.multiply(
        literal(0.5), arithmetic.subtract(call("exp", FLOAT, x), call("exp", FLOAT, arithmetic.negative(x)))
    )


def _cosh(x: Expr) -> Expr:
    return arithmetic.multiply(
        literal(0.5), arithmetic.add(call("exp", FLOAT, x), call("exp", FLOAT, arithmetic.negative(x)))
    )


def _log10(x: Expr) -> Expr:
    return arithmetic.multiply(call("log", FLOAT, x), literal(0.4342944819032518))


def _add(name: str, function: Any) -> None:
    @functools.wraps(function)
    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        return unary(lambda item: function(item, *args, **kwargs), x)

    FUNCTIONS[name] = run


for _name, _function in {
    "sigmoid": _sigmoid, "special_expit": _sigmoid, "expit": _sigmoid, "softplus": _softplus, "gelu": _gelu, "relu": _relu,
    "leaky_relu": _leaky_relu, "elu": _elu, "logsigmoid": _log_sigmoid, "log_sigmoid": _log_sigmoid, "hardtanh": _hardtanh,
    "sinh": _sinh, "cosh": _cosh, "log10": _log10,
    "silu": lambda x: arithmetic.multiply(cast(x, FLOAT), _sigmoid(x)),
    "softsign": lambda x: arithmetic.divide(x, arithmetic.add(literal(1.0), arithmetic.absolute(x))),
    "relu6": lambda x: arithmetic.extremum("min", _relu(x), literal(6.0)),
    "mish": lambda x: arithmetic.multiply(cast(x, FLOAT), call("tanh", FLOAT, _softplus(x))),
    "deg2rad": lambda x: arithmetic.multiply(cast(x, FLOAT), literal(0.017453292519943295)),
    "isinf": lambda x: compare("==", arithmetic.absolute(cast(x, FLOAT)), literal(float("inf"))),
    "isnan": lambda x: Expr("bool", "!=", (cast(x, FLOAT), cast(x, FLOAT))),
}.items():  # fmt: skip
    _add(_name, _function)
