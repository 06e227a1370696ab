"""A mod with its arrays replaced by what records how they are read.

Arrays are found in closure cells, globals that the function and its helpers name, default arguments,
functools.partial, attributes of objects, dicts, lists and tuples."""

from __future__ import annotations

import functools
import math
import sys
import types
from typing import Any, Dict, Set

from .._arrays import is_array
from .captured import Captured, is_symbolic
from .expr import Expr
from .values import Row

_LIBRARIES = {"torch", "numpy", "jax", "jaxlib", "builtins", "math", "functools", "operator", "typing", "collections"}
_SHORT = {"numpy": "np", "jax": "jnp", "math": "math"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, Expr, Row, Captured)


def _library_of(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").partition(".")[0]


class _Module:
    """math, numpy or jax.numpy, whose functions take values of the kernel too."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return _Module(value)
        return _function(value) if callable(value) and not isinstance(value, type) else value


def _function(function: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        from .captured import keep, plain

        if any(map(is_symbolic, (*args, *kwargs.values()))):
            from .dispatch import call

            return call(function.__name__, args, kwargs, _SHORT.get(_library_of(function), ""))
        return keep(function(*plain(args), **{key: plain(value) for key, value in kwargs.items()}), "")

    return run


class _Object:
    """An object whose attributes may be arrays."""

    def __init__(self, value: Any, capture: "Capture", name: str) -> None:
        object.__setattr__(self, "_tilewright", (value, capture, name))

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "_tilewright":
            return object.__getattribute__(self, attribute)
        value, capture, name = self._tilewright
        if attribute == "__class__":
            return value.__class__
        return capture.swap(getattr(value, attribute), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, capture, _ = self._tilewright
        return capture.function(type(value).__call__)(self, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        value, capture, name = self._tilewright
        return capture.swap(value[index], name)


class Capture:
    """One trace's replacements."""

    def __init__(self) -> None:
        self._done: Dict[int, Any] = {}
        self._alive: list[Any] = []

    def swap(self, value: Any, name: str) -> Any:
        if isinstance(value, _PLAIN):
            return value
        if is_array(value):
            return Captured(value, name)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.function(value.__func__), self.swap(value.__self__, name))
        if isinstance(value, functools.partial):
            keywords = {key: self.swap(item, key) for key, item in value.keywords.items()}
            return functools.partial(self.swap(value.func, name), *(self.swap(a, name) for a in value.args), **keywords)
        if isinstance(value, types.ModuleType):
            return _Module(value) if value is math or value.__name__.partition(".")[0] in ("numpy", "jax") else value
        if isinstance(value, types.BuiltinFunctionType) or _library_of(type(value)) in ("numpy", "jax", "jaxlib"):
            return _function(value) if _library_of(value) in ("math", "numpy", "jax") and callable(value) else value
        if type(value) in (list, tuple):
            return type(value)(self.swap(item, name) for item in value)
        if type(value) is dict:
            return {key: self.swap(item, key if isinstance(key, str) else name) for key, item in value.items()}
        if hasattr(value, "__dict__") and _library_of(type(value)) not in _LIBRARIES:
            return _Object(value, self, name)
        return value

    def function(self, function: Any) -> Any:
        if not isinstance(function, types.FunctionType):
            return function
        if id(function) in self._done:
            return self._done[id(function)]
        library = _library_of(function)
        if library in ("numpy", "jax"):
            return _function(function)
        if library in _LIBRARIES or library == "tilewright" and not function.__closure__:
            return function
        return self._copy(function)

    def _copy(self, function: types.FunctionType) -> types.FunctionType:
        code = function.__code__
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        names = {name for name in _names(code) if name in function.__globals__}
        copied = dict(function.__globals__)
        new = types.FunctionType(code, copied, function.__name__, None, cells)
        self._done[id(function)] = new
        self._alive.append(function)
        for name in names:
            copied[name] = self.swap(function.__globals__[name], name)
        for name, cell, old in zip(code.co_freevars, cells, function.__closure__ or ()):
            try:
                cell.cell_contents = self.swap(old.cell_contents, name)
            except ValueError:  # an empty cell: a function that names itself before it exists
                continue
        positional = code.co_varnames[: code.co_argcount]
        defaults = function.__defaults__ or ()
        new.__defaults__ = tuple(
            self.swap(value, name) for name, value in zip(positional[code.co_argcount - len(defaults) :], defaults)
        )
        keywords = function.__kwdefaults__ or {}
        new.__kwdefaults__ = {name: self.swap(value, name) for name, value in keywords.items()}
        return new


def _names(code: types.CodeType) -> Set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def captured_function(mod: Any) -> Any:
    """The mod, ready to be called with values of the kernel."""
    mod = getattr(mod, "_torchdynamo_orig_callable", mod)  # of torch.compile
    return Capture().swap(mod, "")


def torch_is_loaded() -> bool:
    return "torch" in sys.modules
