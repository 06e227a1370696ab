"""Numbers for objects, which a graph of torch.compile can hold in their place."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_numbers = itertools.count()
_objects: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()


def enroll(thing: Any) -> int:
    """A number for an object, for as long as it lives."""
    number = next(_numbers)
    _objects[number] = thing
    return number


def find(number: int) -> Any:
    """The object of a number; None for -1."""
    if number < 0:
        return None
    found = _objects.get(number)
    if found is None:
        from ._error import Error

        raise Error(
            "usage",
            "a compiled function uses an Attention, BlockMask, Plan or Bindings that no longer exists",
            "keep it",
        )
    return found
