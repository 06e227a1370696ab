"""Calls of flex_attention that are ready: made again with the same shapes and mods, they trace and look up nothing."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._arrays import framework, readable
from ._trace.cache import Traced, identity, keep_in, the_mod

_calls: Dict[Any, Tuple["Call", ...]] = {}
_MISS = object()


def key_of(query: Any, key: Any, value: Any, score_mod: Any, mask: Any, options: Tuple[Any, ...]) -> Any:
    """Equal for calls that may share a Call."""
    mod = score_mod if score_mod is None or type(score_mod) is str else identity(the_mod(score_mod))
    arrays = (type(query), type(key), type(value), query.shape, key.shape, value.shape)
    dtypes = (query.dtype, key.dtype, value.dtype, getattr(query, "device", None))
    return (arrays, dtypes, mod, -1 if mask is None else mask._number, options)


def run(key: Any, query: Any, key_array: Any, value: Any, score_mod: Any, scale: Any) -> Any:
    """The result of a call that is ready; _MISS of another."""
    for call in _calls.get(key, ()):
        result = call.run(query, key_array, value, score_mod, scale)
        if result is not _MISS:
            return result
    return _MISS


def keep(key: Any, call: "Call") -> None:
    keep_in(_calls, key, call)


def is_miss(result: Any) -> bool:
    return result is _MISS


class Call:
    """An attention with the places of its mods' arrays. It keeps no array alive."""

    def __init__(
        self, attention: Any, traced: Optional[Traced], mask: Any, names: List[str], scalars: Mapping[str, float]
    ) -> None:
        self._attention, self._traced, self._scalars = attention, traced, dict(scalars)
        self._mask = None if mask is None else weakref.ref(mask)
        places = {} if traced is None else traced.places
        of_mask = {} if mask is None else mask._snippet.buffers
        self._names = [(name, None if name in of_mask else places[name]) for name in names]
        self._bound: Any = None

    def run(self, query: Any, key: Any, value: Any, score_mod: Any, scale: Any) -> Any:
        mask, taken = None, _NOTHING
        if self._mask is not None:
            mask = self._mask()
            if mask is None:
                return _MISS
            taken = mask._snippet.buffers
        found: List[Any] = []
        if self._traced is not None:
            arrays = self._traced.arrays(the_mod(score_mod), taken)
            if arrays is None:
                return _MISS
            found = arrays
        bindings = None
        if self._names:
            bindings = self._bindings([taken[n] if place is None else found[place] for n, place in self._names])
            if bindings is None:
                return _MISS
        elif self._scalars:
            bindings = self._bindings([])
        core_mask = None if mask is None else mask._built or mask._core_mask()
        return self._attention._run(query, key, value, None, None, core_mask, None, bindings, scale, 0, 0, None, None)

    def _bindings(self, arrays: List[Any]) -> Any:
        """Of the arrays as they are now; None where gradients are wanted. Those of the last call, where nothing moved."""
        for array in arrays:
            if framework(array) == "torch" and array.requires_grad and sys.modules["torch"].is_grad_enabled():
                return None
        state = [(id(array), *_place(array)) for array in arrays]
        bound = self._bound
        if bound is not None and bound[0] == state and all(ref() is a for ref, a in zip(bound[1], arrays)):
            return bound[2]
        names = [name for name, _ in self._names]
        core = self._attention._core
        if any(framework(array) == "" for array in arrays):
            return core.bind({name: readable(array) for name, array in zip(names, arrays)}, self._scalars)
        bindings = core.bind(dict(zip(names, arrays)), self._scalars, owned=False)
        try:
            self._bound = (state, [weakref.ref(array) for array in arrays], bindings)
        except TypeError:
            return core.bind(dict(zip(names, arrays)), self._scalars)
        return bindings


_NOTHING: Dict[str, Any] = {}


def _place(array: Any) -> Tuple[Any, ...]:
    """What torch lets a program change in place: where a tensor's elements lie."""
    return (array.data_ptr(), array.stride()) if framework(array) == "torch" else ()
