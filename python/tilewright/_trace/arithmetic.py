"""Python's arithmetic on values of the kernel: floor division, integer powers, bools as numbers."""

from __future__ import annotations

import operator
from typing import Any, Optional, Tuple

from .expr import BOOL, FLOAT, INT, LONG, Expr, call, cast, fold, is_literal, literal, number, select, widest
from .refuse import refuse


def _bounds(op: str, a: Expr, b: Expr) -> Tuple[Optional[int], Optional[int]]:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        low = 0 if op in "+*" and a.never_negative and b.never_negative else None
        return low, None
    if op == "+":
        return a.low + b.low, a.high + b.high
    if op == "-":
        return a.low - b.high, a.high - b.low
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _is(x: Expr, value: int) -> bool:
    return is_literal(x) and x.args[0] == value


def add(a: Expr, b: Expr) -> Expr:
    return _linear("+", a, b)


def subtract(a: Expr, b: Expr) -> Expr:
    return _linear("-", a, b)


def multiply(a: Expr, b: Expr) -> Expr:
    return _linear("*", a, b)


def _linear(op: str, a: Expr, b: Expr) -> Expr:
    known = fold({"+": operator.add, "-": operator.sub, "*": operator.mul}[op], a, b)
    if known is not None:
        return known
    if a.kind == BOOL and b.kind == BOOL:  # as torch, numpy and jax have it
        if op == "-":
            refuse("a mod subtracts conditions", "write a ^ b, or a.to(torch.int32) - b.to(torch.int32)")
        return bitwise("|" if op == "+" else "&", a, b)
    kind = widest(a, b)
    if op == "*" and kind != FLOAT and (_is(a, 0) or _is(b, 0)):
        return literal(0)
    if kind != FLOAT:  # of floats, 0 and 1 keep -0 and infinities as they are
        if _is(b, 0 if op != "*" else 1):
            return number(a)
        if op != "-" and _is(a, 0 if op == "+" else 1):
            return number(b)
    low, high = _bounds(op, a, b) if kind != FLOAT else (None, None)
    return Expr(kind, op, (number(a), number(b)), low, high)


def divide(a: Expr, b: Expr) -> Expr:
    """Python's `/`: a float."""
    known = fold(operator.truediv, a, b)
    return known if known is not None else Expr(FLOAT, "/", (cast(a, FLOAT), number(b)))


def _require_divisor(b: Expr) -> None:
    if is_literal(b) and b.args[0] == 0:
        refuse("a mod divides by zero", "check the number that the mod captures")


def floor_divide(a: Expr, b: Expr) -> Expr:
    _require_divisor(b)
    known = fold(operator.floordiv, a, b)
    if known is not None:
        return known
    kind = widest(a, b)
    if kind == FLOAT:
        return call("floor_div", FLOAT, a, b)
    if _is(b, 1):
        return number(a)
    if a.never_negative and b.low is not None and b.low > 0:
        return Expr(kind, "/", (number(a), number(b)), 0, a.high)
    return Expr(kind, "call", ("floor_div", number(a), number(b)))


def remainder(a: Expr, b: Expr) -> Expr:
    _require_divisor(b)
    known = fold(operator.mod, a, b)
    if known is not None:
        return known
    kind = widest(a, b)
    if kind == FLOAT:
        return call("floor_mod", FLOAT, a, b)
    positive = b.low is not None and b.low > 0
    high = b.high - 1 if positive and b.high is not None else None
    if a.never_negative and positive:
        return Expr(kind, "%", (number(a), number(b)), 0, high)
    return Expr(kind, "call", ("floor_mod", number(a), number(b)), 0 if positive else None, high)


def truncated_divide(a: Expr, b: Expr) -> Expr:
    """torch.div(rounding_mode="trunc")."""
    _require_divisor(b)
    kind = widest(a, b)
    if kind != FLOAT:
        return Expr(kind, "/", (number(a), number(b)))
    quotient = divide(a, b)
    return select(
        Expr(BOOL, "<", (quotient, literal(0.0))), call("ceil", FLOAT, quotient), call("floor", FLOAT, quotient)
    )


def negative(a: Expr) -> Expr:
    known = fold(operator.neg, number(a))
    if known is not None:
        return known
    a = number(a)
    return Expr(a.kind, "neg", (a,), None if a.high is None else -a.high, None if a.low is None else -a.low)


def absolute(a: Expr) -> Expr:
    known = fold(abs, a)
    a = number(a)
    if known is not None or a.never_negative:
        return known if known is not None else a
    return Expr(a.kind, "call", ("abs", a), None if a.kind == FLOAT else 0)


def power(a: Expr, b: Expr) -> Expr:
    """Python's `**`: of integers an integer."""
    if is_literal(a) and is_literal(b) and (abs(b.args[0]) <= 1024 or FLOAT in (a.kind, b.kind)):
        known = fold(operator.pow, a, b)
        if known is not None:
            return known
    if is_literal(b) and not isinstance(b.args[0], bool):
        exponent = b.args[0]
        if exponent == int(exponent) and 0 <= exponent <= 8:
            result = cast(a, FLOAT) if b.kind == FLOAT else number(a)
            product = literal(1.0 if result.kind == FLOAT else 1)
            for step in range(int(exponent)):
                product = result if step == 0 else multiply(product, result)
            return product
        if exponent == 0.5:
            return call("sqrt", FLOAT, a)
        if exponent == -0.5:
            return call("rsqrt", FLOAT, a)
        if exponent == -1 and a.kind == FLOAT:
            return divide(literal(1.0), a)
    if FLOAT in (a.kind, b.kind):
        return call("exp2", FLOAT, b) if _is(a, 2) else call("pow", FLOAT, a, b)
    return _integer_power(number(a), number(b))


def _integer_power(a: Expr, b: Expr) -> Expr:
    if is_literal(b):
        exponent = b.args[0]
        refuse(
            f"a mod raises an integer to the power {exponent}"
            + (", which is not an integer" if exponent < 0 else ", which overflows"),
            f"write x.to(torch.float32) ** {exponent}",
        )
    if not is_literal(a):
        refuse(
            "a mod raises an integer that is only known in the kernel to a power that is only known there too",
            "write x.to(torch.float32) ** y, or a product",
        )
    base = a.args[0]
    if base == 2:
        return Expr(widest(a, b), "<<", (literal(1), b), 1)
    factors, square, bit = [], base, 1
    while abs(square) < 2**31 and bit < 32:
        chosen = Expr(INT, "&", (b, literal(bit)))
        factors.append(select(Expr(BOOL, "!=", (chosen, literal(0))), literal(square), literal(1)))
        square, bit = square * square, bit * 2
    result = factors[0]
    for factor in factors[1:]:
        result = multiply(result, factor)
    return result


_BITS = {"&": "&&", "|": "||", "^": "!="}


def bitwise(op: str, a: Expr, b: Expr) -> Expr:
    """& | ^ of conditions, or of integers."""
    known = fold({"&": operator.and_, "|": operator.or_, "^": operator.xor}[op], a, b)
    if known is not None:
        return known
    if FLOAT in (a.kind, b.kind):
        refuse(f"a mod computes {op} of a float", "compare first: (x > 0) & (y > 0)")
    if a.kind == BOOL and b.kind == BOOL:
        for x, y in ((a, b), (b, a)):
            if is_literal(x) and op != "^":
                return y if x.args[0] == (op == "&") else x
        return Expr(BOOL, _BITS[op], (a, b))
    low = (
        0 if (a.never_negative and b.never_negative) or (op == "&" and (a.never_negative or b.never_negative)) else None
    )
    return Expr(widest(a, b), op, (number(a), number(b)), low)


def invert(a: Expr) -> Expr:
    if a.kind == FLOAT:
        refuse("a mod computes ~ of a float", "write ~(x > 0)")
    if is_literal(a):
        return literal(not a.args[0] if a.kind == BOOL else ~a.args[0])
    return Expr(a.kind, "!" if a.kind == BOOL else "~", (a,))


def shift(op: str, a: Expr, b: Expr) -> Expr:
    if FLOAT in (a.kind, b.kind):
        refuse(f"a mod computes {op} of a float", "write x * 2 ** n, or x / 2 ** n")
    bits = 64 if a.kind == LONG or is_literal(a) and is_literal(b) else 32
    if is_literal(b) and not 0 <= b.args[0] < bits:
        refuse(f"a mod shifts by {int(b.args[0])} bits", f"shift by 0 to {bits - 1}")
    known = fold({"<<": operator.lshift, ">>": operator.rshift}[op], a, b)
    return (
        known
        if known is not None
        else Expr(LONG if LONG in (a.kind,) else INT, op, (number(a), number(b)), 0 if a.never_negative else None)
    )


def extremum(name: str, a: Expr, b: Expr) -> Expr:
    """min or max."""
    known = fold(min if name == "min" else max, a, b)
    if known is not None:
        return known
    kind = widest(a, b)
    pick: Any = min if name == "min" else max
    lows = [x.low for x in (a, b) if x.low is not None]
    highs = [x.high for x in (a, b) if x.high is not None]
    low = pick(lows) if len(lows) == 2 else (lows[0] if name == "max" and lows else None)
    high = pick(highs) if len(highs) == 2 else (highs[0] if name == "min" and highs else None)
    return call(name, kind, a, b, low=None if kind == FLOAT else low, high=None if kind == FLOAT else high)
