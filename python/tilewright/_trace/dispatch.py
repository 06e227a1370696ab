"""Calls of torch and numpy with values of the kernel."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, FrozenSet, Tuple

from . import activations, reductions  # noqa: F401  they add to FUNCTIONS
from .captured import Captured, is_symbolic, keep, plain
from .extremes import extremes
from .expr import Expr
from .functions import FUNCTIONS, convert
from .once import once
from .refuse import MAY_CALL, refuse
from .values import Row, lift

_DUNDER = {
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
# Keywords that change no value of one number.
_WITHOUT_EFFECT = frozenset(
    "device memory_format copy non_blocking layout inplace keepdim keepdims order subok casting".split()
)
_DUNDER.update(invert="bitwise_not", lshift="bitwise_left_shift", rshift="bitwise_right_shift")


def call(name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], library: str = "") -> Any:
    """name(*args), where something is a value of the kernel. library: whose function it is, for messages."""
    if name == "__getitem__":
        array, index = args
        return (array if isinstance(array, (Captured, Row)) else Captured(array))[index]
    if name in ("__get__", "__set__"):
        refuse("a mod asks a value of the kernel for an attribute that it does not have", MAY_CALL)
    if name.startswith("__") and name.endswith("__"):
        bare = name.strip("_")
        if (
            bare.startswith("r")
            and bare not in ("rshift",)
            and bare[1:] in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
        ):
            bare, args = bare[1:], args[::-1]
        name = _DUNDER.get(bare, bare)
    shown = f"{library}.{name}"
    function = FUNCTIONS.get(name)
    if function is None:
        if FUNCTIONS.get(name[:-1]) and name.endswith("_"):
            refuse(f"a mod changes a value in place: {shown}", f"write x = x.{name[:-1]}(...)")
        refuse(f"{shown} is not among a snippet's functions", MAY_CALL)
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    for second in ("other", "exponent", "fill_value"):
        if second in kwargs and len(args) == 1:
            args = (*args, kwargs.pop(second))
    return _run(shown, function, tuple(map(_operand, args)), kwargs)


def method(value: Any, name: str) -> Callable[..., Any]:
    """value.name, where value is one of the kernel. Names that no function has are refused at once."""
    if FUNCTIONS.get(name) is None:
        call(name, (value,), {})
    return lambda *args, **kwargs: call(name, (value, *args), kwargs)


def _run(shown: str, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Calls one of FUNCTIONS with the keywords that it reads."""
    signature, names, all_keywords = _parameters(function)
    given = {}
    for key, value in kwargs.items():
        if key in names or all_keywords:
            given[key] = value
        elif key not in _WITHOUT_EFFECT and key != "dtype" and value is not None:
            refuse(f"a mod calls {shown} with {key}=, which is not translated", f"leave out {key}=")
    try:
        signature.bind(*args, **given)
    except TypeError:
        wanted = ", ".join(p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD)
        refuse(f"a mod calls {shown} with arguments that are not translated", f"its arguments here are ({wanted})")
    result = function(*args, **given)
    dtype = kwargs.get("dtype")
    return result if dtype is None or "dtype" in names or all_keywords else convert(result, dtype=dtype)


@functools.lru_cache(maxsize=None)
def _parameters(function: Callable[..., Any]) -> Tuple[inspect.Signature, FrozenSet[str], bool]:
    """The signature, the names of keywords, and whether all others are taken too."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    names = frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return signature, names, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _operand(arg: Any) -> Any:
    return lift(arg) if isinstance(arg, Captured) else arg


def call_torch(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """A function of torch. Of captured tensors alone it is torch's own, once, before the call."""
    if any(map(is_symbolic, (*args, *kwargs.values()))):
        called = getattr(function, "__name__", str(function))
        return extremes(called, call(called, args, dict(kwargs), "torch"), args, kwargs)
    once()
    name = next((arg.name for arg in args if isinstance(arg, Captured)), "")
    return keep(function(*plain(args), **{key: plain(value) for key, value in kwargs.items()}), name)


# Functions of torch whose result the numbers that they are given decide.
_OF_CONSTANTS = {"tensor", "as_tensor", "scalar_tensor", "full", "zeros", "ones", "arange", "item", "__get__"}


def make_torch_mode() -> Any:
    """Catches tensor[value] of tensors that no other way leads to; torch asks modes alone."""
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if any(_stands_for(value) for value in (*args, *kwargs.values())):
                return call_torch(function, args, kwargs)
            if getattr(function, "__name__", "") not in _OF_CONSTANTS:
                once()
            return function(*args, **kwargs)

    return Mode()


def _stands_for(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_stands_for, value))
    return isinstance(value, (Expr, Row, Captured))
