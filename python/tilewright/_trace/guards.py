"""What a trace has read: checks that are made again before the trace is used for another call.

A check takes the value that stands where the traced one stood, and the State of one pass. It appends the arrays that it
comes by to the state, always in the same order."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict, List, Mapping, Tuple

from .expr import Expr

MISSING = object()


class State:
    """One pass over a mod."""

    __slots__ = ("arrays", "functions")

    def __init__(self) -> None:
        self.arrays: List[Any] = []
        self.functions: Dict[int, Any] = {}


Check = Callable[[Any, State], bool]


def same(value: Any) -> Check:
    """This very object: a module, a class, a function of a library."""
    return lambda now, state: now is value


def equal(value: Any) -> Check:
    """A number or text that became part of the code."""
    kind, text = type(value), repr(value)
    if isinstance(value, (float, complex)):  # -0.0 == 0.0, and NaN differs from itself
        return lambda now, state: type(now) is kind and (now is value or repr(now) == text)
    return lambda now, state: now is value or (type(now) is kind and bool(now == value))


def scalar(value: Expr) -> Check:
    if value.op != "scalar":
        return same(value)
    name, default = value.args
    check = equal(default)
    return lambda now, state: (
        now is value or (type(now) is Expr and now.op == "scalar" and now.args[0] == name and check(now.args[1], state))
    )


def array(value: Any) -> Check:
    """An array of the same kind: its contents are read by each call."""
    kind, dtype, shape = type(value), value.dtype, value.shape

    def check(now: Any, state: State) -> bool:
        if type(now) is not kind or now.shape != shape or now.dtype != dtype:
            return False
        state.arrays.append(now)
        return True

    return check


def sequence(kind: Any, items: List[Check]) -> Check:
    """A list or tuple."""

    def check(now: Any, state: State) -> bool:
        return type(now) is kind and len(now) == len(items) and all(c(x, state) for c, x in zip(items, now))

    return check


def mapping(items: Mapping[Any, Check]) -> Check:
    """A dict."""

    def check(now: Any, state: State) -> bool:
        return type(now) is dict and list(now) == list(items) and all(c(now[key], state) for key, c in items.items())

    return check


def partial(function: Check, args: Check, keywords: Check) -> Check:
    def check(now: Any, state: State) -> bool:
        return (
            type(now) is functools.partial
            and function(now.func, state)
            and args(now.args, state)
            and keywords(now.keywords, state)
        )

    return check


def method(function: Check, owner: Check) -> Check:
    def check(now: Any, state: State) -> bool:
        return type(now) is types.MethodType and function(now.__func__, state) and owner(now.__self__, state)

    return check


def attributes(kind: Any, reads: List[Tuple[str, Any, Check]]) -> Check:
    """An object: what the mod has read of it, in the order of reading. `reads` grows while the mod runs."""

    def check(now: Any, state: State) -> bool:
        if type(now) is not kind:
            return False
        for way, key, part in reads:
            if way == "attribute":
                value = getattr(now, key, MISSING)
            else:
                value = kind.__call__ if way == "call" else now[key]
            if value is MISSING or not part(value, state):
                return False
        return True

    return check


class FunctionCheck:
    """A function of the same code, over what its cells, globals and defaults hold."""

    def __init__(self, function: types.FunctionType) -> None:
        self.code, self.globals = function.__code__, function.__globals__
        self.names: List[Tuple[str, Check]] = []
        self.cells: List[Check] = []
        self.defaults: Check = same(None)
        self.keywords: Check = same(None)

    def __call__(self, now: Any, state: State) -> bool:
        known = state.functions.get(id(self), MISSING)
        if known is not MISSING:
            return known is now
        if type(now) is not types.FunctionType or now.__code__ is not self.code or now.__globals__ is not self.globals:
            return False
        state.functions[id(self)] = now
        for name, check in self.names:
            if not check(self.globals.get(name, MISSING), state):
                return False
        for check, cell in zip(self.cells, now.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:
                held = MISSING
            if not check(held, state):
                return False
        return self.defaults(now.__defaults__, state) and self.keywords(now.__kwdefaults__, state)
