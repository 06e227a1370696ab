"""A mod with its arrays replaced by what records how they are read.

Arrays are found in closure cells, globals that the function and its helpers name, default arguments,
functools.partial, attributes of objects, dicts, lists and tuples."""

from __future__ import annotations

import dataclasses
import dis
import functools
import math
import sys
import types
from typing import Any, Dict, List, Optional, Set, Tuple

from .._arrays import is_array
from . import guards
from .captured import Captured, has_captured, is_symbolic
from .once import once
from .expr import Expr
from .guards import Check
from .values import Row

_LIBRARIES = {"torch", "numpy", "jax", "jaxlib", "builtins", "math", "functools", "operator", "typing", "collections"}
_WITHOUT_STATE = _LIBRARIES | {"_operator", "_functools", "ml_dtypes", "tilewright"}
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
        owner = getattr(function, "__self__", None)
        stateful = owner is not None and not isinstance(owner, types.ModuleType)
        if stateful or "random" in str(getattr(function, "__module__", None)) or has_captured((args, kwargs)):
            once()
        return keep(function(*plain(args), **{key: plain(value) for key, value in kwargs.items()}), "")

    return run


class _Object:
    """An object whose attributes may be arrays."""

    def __init__(self, value: Any, capture: "Capture", name: str, reads: List[Tuple[str, Any, Check]]) -> None:
        object.__setattr__(self, "_tilewright", (value, capture, name, reads))

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "_tilewright":
            return object.__getattribute__(self, attribute)
        value, capture, name, reads = self._tilewright
        if attribute == "__class__":
            capture._require_known(value.__class__)
            return value.__class__
        try:
            found = getattr(value, attribute)
        except AttributeError:
            once()
            raise
        swapped, check = capture.pair(found, attribute)
        reads.append(("attribute", attribute, check))
        return swapped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, capture, _, reads = self._tilewright
        swapped, check = capture.pair(type(value).__call__, "")
        reads.append(("call", None, check))
        return swapped(self, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        value, capture, name, reads = self._tilewright
        try:
            found = value[index]
        except LookupError:
            once()
            raise
        swapped, check = capture.pair(found, name)
        if isinstance(index, (int, str)):
            reads.append(("item", index, check))
        else:
            once()
        return swapped


class Capture:
    """One trace's replacements, and the checks of what they stand for."""

    def __init__(self) -> None:
        self._done: Dict[int, Tuple[Any, Check]] = {}
        self._alive: List[Any] = []
        self.arrays: List[Any] = []  # as a State has them
        self.lasting = True  # False: the trace holds for one call

    def pair(self, value: Any, name: str) -> Tuple[Any, Check]:
        """What takes the value's place in the copy of the mod, and the check of the value."""
        if isinstance(value, (Expr, Row, Captured)):
            return value, guards.scalar(value) if type(value) is Expr else guards.same(value)
        if isinstance(value, type):
            self._require_known(value)
            return value, guards.same(value)
        if isinstance(value, _PLAIN):
            return value, guards.equal(value)
        if is_array(value):
            self.arrays.append(value)
            return Captured(value, name), guards.array(value)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            function, function_check = self.pair(value.__func__, name)
            owner, owner_check = self.pair(value.__self__, name)
            return types.MethodType(function, owner), guards.method(function_check, owner_check)
        if isinstance(value, functools.partial):
            return self._partial(value, name)
        if isinstance(value, types.ModuleType):
            return self._module(value, name)
        if isinstance(value, types.BuiltinFunctionType) or _library_of(type(value)) in ("numpy", "jax", "jaxlib"):
            return self._of_library(value)
        if type(value) in (list, tuple):
            pairs = [self.pair(item, name) for item in value]
            return type(value)(p for p, _ in pairs), guards.sequence(type(value), [check for _, check in pairs])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            pairs = [self.pair(item, name) for name, item in zip(value._fields, value)]
            return type(value)(*(p for p, _ in pairs)), guards.sequence(type(value), [check for _, check in pairs])
        if type(value) is dict:
            named = {key: self.pair(item, key if isinstance(key, str) else name) for key, item in value.items()}
            return {key: p for key, (p, _) in named.items()}, guards.mapping({key: c for key, (_, c) in named.items()})
        has_attributes = hasattr(value, "__dict__") or dataclasses.is_dataclass(value)
        if has_attributes and _library_of(type(value)) not in _LIBRARIES:
            reads: List[Tuple[str, Any, Check]] = []
            return _Object(value, self, name, reads), guards.attributes(type(value), reads)
        constant = isinstance(value, (range, slice, type(...))) or (
            _library_of(type(value)) == "torch" and type(value).__name__ in ("dtype", "device", "Size", "layout")
        )
        self.lasting = self.lasting and constant
        return value, guards.same(value)

    def _require_known(self, kind: Any) -> None:
        """Classes of a user, and objects of other kinds, may change where no check sees it."""
        if _library_of(kind) not in _WITHOUT_STATE:
            self.lasting = False

    def _partial(self, value: Any, name: str) -> Tuple[Any, Check]:
        function, function_check = self.pair(value.func, name)
        args, args_check = self.pair(tuple(value.args), name)
        keywords, keywords_check = self.pair(dict(value.keywords), name)
        check = guards.partial(function_check, args_check, keywords_check)
        return functools.partial(function, *args, **keywords), check

    def _module(self, value: Any, name: str) -> Tuple[Any, Check]:
        library = value.__name__.partition(".")[0]
        if value is math or library in ("numpy", "jax"):
            return _Module(value), guards.same(value)
        if library in _WITHOUT_STATE:
            return value, guards.same(value)
        reads: List[Tuple[str, Any, Check]] = []
        return _Object(value, self, name, reads), guards.attributes(type(value), reads)

    def _of_library(self, value: Any) -> Tuple[Any, Check]:
        library = _library_of(value)
        if library in ("math", "numpy", "jax") and callable(value):
            return _function(value), guards.same(value)
        if isinstance(value, types.BuiltinFunctionType):
            self._require_known(value)
            return value, guards.same(value)
        if not hasattr(value, "item") and type(value).__name__ != "dtype" and not isinstance(value, types.FunctionType):
            self.lasting = False  # such as a generator of random numbers
        return value, guards.equal(value)

    def function(self, function: Any) -> Tuple[Any, Check]:
        if id(function) in self._done:
            return self._done[id(function)]
        library = _library_of(function)
        if library in ("numpy", "jax"):
            return _function(function), guards.same(function)
        if library in _LIBRARIES or library == "tilewright" and not function.__closure__:
            return function, guards.same(function)
        return self._copy(function)

    def _copy(self, function: types.FunctionType) -> Tuple[Any, Check]:
        code = function.__code__
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        copied = dict(function.__globals__)
        new = types.FunctionType(code, copied, function.__name__, None, cells)
        check = guards.FunctionCheck(function)
        self._done[id(function)] = new, check
        self._alive.append(function)
        for name in _global_names(code):
            found = function.__globals__.get(name, guards.MISSING)
            if found is guards.MISSING:
                check.names.append((name, guards.same(found)))
                continue
            copied[name], part = self.pair(found, name)
            check.names.append((name, part))
        for name, cell, old in zip(code.co_freevars, cells, function.__closure__ or ()):
            try:
                cell.cell_contents, part = self.pair(old.cell_contents, name)
            except ValueError:  # an empty cell: a function that names itself before it exists
                part = guards.same(guards.MISSING)
            check.cells.append(part)
        new.__defaults__, check.defaults = self._defaults(function)
        new.__kwdefaults__, check.keywords = self.pair(function.__kwdefaults__, "")
        return new, check

    def _defaults(self, function: types.FunctionType) -> Tuple[Optional[Tuple[Any, ...]], Check]:
        values = function.__defaults__
        if values is None:
            return None, guards.same(None)
        names = function.__code__.co_varnames[: function.__code__.co_argcount][-len(values) :]
        pairs = [self.pair(value, name) for name, value in zip(names, values)]
        return tuple(p for p, _ in pairs), guards.sequence(tuple, [check for _, check in pairs])


def _global_names(code: types.CodeType) -> List[str]:
    """Globals that a function and the functions in it read, in a fixed order."""
    names: Set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            once()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_global_names(constant))
    return sorted(names)


def torch_is_loaded() -> bool:
    return "torch" in sys.modules
