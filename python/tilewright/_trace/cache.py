"""Traces that hold for later calls: a mod of the same code, whose closures, globals and defaults hold the same numbers
and arrays of the same kind."""

from __future__ import annotations

import functools
import threading
import types
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .guards import Check, State

_MODS, _PER_MOD = 512, 8  # traces that are kept


class Traced:
    """A trace, with what it depends on and where its arrays come from."""

    def __init__(self, check: Check, arrays: List[Any], buffers: Mapping[str, Any], taken: Mapping[str, Any]) -> None:
        self._check = check
        first = {id(array): place for place, array in reversed(list(enumerate(arrays)))}
        self._alike = [(first[id(array)], place) for place, array in enumerate(arrays) if first[id(array)] != place]
        self._shared = [(first[id(a)], name) for name, a in taken.items() if id(a) in first]
        self.places = {name: first[id(array)] for name, array in buffers.items()}

    def arrays(self, fn: Any, taken: Mapping[str, Any]) -> Optional[List[Any]]:
        """The arrays that fn captures now; None where it is another mod."""
        state = State()
        try:
            if not self._check(fn, state):
                return None
        except Exception:  # noqa: BLE001  an attribute or item that is gone
            return None
        found = state.arrays
        for a, b in self._alike:
            if found[a] is not found[b]:
                return None
        for place, name in self._shared:
            if found[place] is not taken[name]:
                return None
        return found


def lasts(arrays: List[Any], buffers: Mapping[str, Any]) -> bool:
    """Whether all buffers are arrays that a check comes by."""
    known = {id(array) for array in arrays}
    return all(id(array) in known for array in buffers.values())


def the_mod(mod: Any) -> Any:
    """What is traced of a mod."""
    return getattr(mod, "_torchdynamo_orig_callable", mod)  # of torch.compile


def identity(fn: Any) -> Any:
    """Equal for mods that may be one another with other closures."""
    kind = type(fn)
    if kind is types.FunctionType:
        return fn.__code__
    if kind is types.MethodType:
        return kind, identity(fn.__func__)
    if kind is functools.partial:
        return kind, identity(fn.func)
    return kind


_traces: Dict[Any, Tuple[Any, ...]] = {}
_lock = threading.Lock()


def kept(key: Any) -> Tuple[Any, ...]:
    """What keep() was given for this key, newest first."""
    return _traces.get(key, ())


def keep(key: Any, item: Any) -> None:
    """Keeps an item for each of the newest keys."""
    keep_in(_traces, key, item)


def keep_in(cache: Dict[Any, Tuple[Any, ...]], key: Any, item: Any) -> None:
    with _lock:
        cache[key] = (item, *cache.pop(key, ()))[:_PER_MOD]
        if len(cache) > _MODS:
            del cache[next(iter(cache))]
