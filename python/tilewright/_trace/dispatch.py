"""Calls of torch and numpy with values of the kernel."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from . import activations, reductions  # noqa: F401  they add to FUNCTIONS
from .captured import Captured, is_symbolic, keep, plain
from .expr import Expr
from .functions import FUNCTIONS
from .refuse import refuse
from .values import Row, lift

_DUNDER = {
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_DUNDER.update(invert="bitwise_not", lshift="bitwise_left_shift", rshift="bitwise_right_shift")


def call(name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """name(*args), where something is a value of the kernel."""
    if name == "__getitem__":
        array, index = args
        return (array if isinstance(array, (Captured, Row)) else Captured(array))[index]
    if name in ("__get__", "__set__"):
        refuse(
            "a mod asks a value of the kernel for an attribute that it does not have",
            "docs/python.md lists what mods may call",
        )
    if name.startswith("__") and name.endswith("__"):
        bare = name.strip("_")
        if (
            bare.startswith("r")
            and bare not in ("rshift",)
            and bare[1:] in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
        ):
            bare, args = bare[1:], args[::-1]
        name = _DUNDER.get(bare, bare)
    function = FUNCTIONS.get(name) or (FUNCTIONS.get(name[:-1]) if name.endswith("_") else None)
    if function is None:
        refuse(f"torch.{name} is not among a snippet's functions", "docs/python.md lists what mods may call")
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    for unused in ("out", "device", "memory_format", "copy", "non_blocking", "layout"):
        kwargs.pop(unused, None)
    return function(*(_operand(arg) for arg in args), **kwargs)


def _operand(arg: Any) -> Any:
    return lift(arg) if isinstance(arg, Captured) else arg


def call_torch(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """A function of torch. Of captured tensors alone it is torch's own, once, before the call."""
    if any(map(is_symbolic, (*args, *kwargs.values()))):
        return call(getattr(function, "__name__", str(function)), args, dict(kwargs))
    name = next((arg.name for arg in args if isinstance(arg, Captured)), "")
    return keep(function(*plain(args), **{key: plain(value) for key, value in kwargs.items()}), name)


def make_torch_mode() -> Any:
    """Catches tensor[value] of tensors that no other way leads to; torch asks modes alone."""
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if any(_stands_for(value) for value in (*args, *kwargs.values())):
                return call_torch(function, args, kwargs)
            return function(*args, **kwargs)

    return Mode()


def _stands_for(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_stands_for, value))
    return isinstance(value, (Expr, Row, Captured))
