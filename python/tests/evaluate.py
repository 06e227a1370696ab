"""What a traced mod gives for numbers: the tree of the trace, computed by Python."""

import math

import numpy as np

from tilewright._trace.capture import Capture, torch_is_loaded
from tilewright._trace.dispatch import make_torch_mode
from tilewright._trace.expr import FLOAT, INT, Expr, symbol
from tilewright._trace.once import running
from tilewright._trace.values import Row, lift

NAMES = ("b", "h", "q_idx", "kv_idx")


def traced(mod):
    """The tree of a mod(score, b, h, q_idx, kv_idx)."""
    capture = Capture()
    symbols = [symbol("score", FLOAT), *(symbol(name, INT, 0, 2**31 - 1) for name in NAMES)]
    from contextlib import nullcontext

    with make_torch_mode() if torch_is_loaded() else nullcontext(), running(capture):
        copy, _ = capture.pair(mod, "")
        result = lift(copy(*symbols))
    return lift(result[0]) if isinstance(result, Row) and len(result) == 1 else result


def _round_to_32(x):
    return (int(x) + 2**31) % 2**32 - 2**31


CALLS = {
    "tanh": math.tanh, "exp": math.exp, "exp2": lambda x: 2.0**x, "expm1": math.expm1, "log": math.log, "log2": math.log2,
    "log1p": math.log1p, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "erf": math.erf, "erfc": math.erfc, "pow": math.pow, "floor": math.floor, "ceil": math.ceil,
    "abs": abs, "sign": lambda x: (x > 0) - (x < 0), "min": min, "max": max, "floor_div": lambda a, b: a // b,
    "floor_mod": lambda a, b: a % b,
}  # fmt: skip
INFIX = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b), "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}  # fmt: skip


def value(node, at):
    """The number of a tree, for at = {"score": ..., "b": ..., ...}."""
    if not isinstance(node, Expr):
        return node
    op, args = node.op, node.args
    if op == "literal":
        return args[0]
    if op == "symbol":
        return at[args[0]]
    if op == "scalar":
        return args[1]
    if op == "extent":
        return args[0].shape[args[2]]
    if op == "load":
        index = [value(a, at) for a in args[2:]]
        assert all(isinstance(i, int) for i in index)
        return np.asarray(args[0])[tuple(min(max(i, 0), n - 1) for i, n in zip(index, args[0].shape))].item()
    if op == "?":
        return value(args[1] if value(args[0], at) else args[2], at)
    if op == "call":
        return CALLS[args[0]](*(value(a, at) for a in args[1:]))
    if op == "cast":
        x = value(args[0], at)
        return {"float": float, "int": _round_to_32, "long long": int, "bool": bool}[node.kind](x)
    a = value(args[0], at)
    if op in ("neg", "!", "~"):
        return -a if op == "neg" else not a if op == "!" else ~a
    b = value(args[1], at)
    if op == "/":
        return a / b if node.kind == FLOAT else int(a / b)
    if op == "%":
        return int(math.fmod(a, b))
    return INFIX[op](a, b)
