"""What is wrong with q, k and v, in the names of the function that was called."""

from __future__ import annotations

import sys
from typing import Any, Optional, Tuple

from ._arrays import (
    device_of, float_dtype, framework, is_traced, require_array, same_framework, shape_of, stored_dtype,
)  # fmt: skip
from ._error import Error

Names = Tuple[str, str, str]


def _refuse_gradients(name: str, array: Any) -> None:
    if framework(array) == "torch" and array.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise Error(
            "tensor",
            f"{name} requires gradients, which this call does not compute",
            f"call under torch.no_grad(), or pass {name}.detach()",
        )


def same_place(**arrays: Any) -> None:
    """Refuses arrays of several frameworks or devices."""
    same_framework(**arrays)
    if any(map(is_traced, arrays.values())):
        return
    first_name, first = next(iter(arrays.items()))
    for name, array in arrays.items():
        if device_of(array) != device_of(first):
            raise Error(
                "tensor",
                f"{first_name} lies on {device_of(first)}, but {name} on {device_of(array)}",
                f"move {name} to {device_of(first)}",
            )


def check_arrays(
    names: Names,
    arrays: Tuple[Any, Any, Any],
    rank: int,
    *,
    first_rank: Optional[int] = None,
    may_want_gradients: bool = False,
) -> str:
    """Framework, rank (of the first, where it differs, first_rank), dtype and device. Returns the framework."""
    kind = same_framework(**dict(zip(names, arrays)))
    for name, array in zip(names, arrays):
        require_array(name, array, first_rank if first_rank and name == names[0] else rank)
        (float_dtype if name == names[0] else stored_dtype)(array, name)
        if not may_want_gradients:
            _refuse_gradients(name, array)
    same_place(**dict(zip(names, arrays)))
    if arrays[1].dtype != arrays[2].dtype:
        raise Error(
            "tensor", f"{names[1]} has dtype {arrays[1].dtype}, but {names[2]} {arrays[2].dtype}", "convert one of them"
        )
    return kind


def check_dense(names: Names, arrays: Tuple[Any, Any, Any], enable_gqa: bool) -> None:
    """Shapes of [B, H, length, head_dim]."""
    q, k, v = map(shape_of, arrays)
    query, key, value = names
    if k[:3] != v[:3]:
        raise Error("tensor", f"{key} is {list(k)}, but {value} is {list(v)}", "only the last dimensions may differ")
    if q[3] != k[3]:
        raise Error("tensor", f"{query} has head_dim {q[3]}, but {key} has {k[3]}", "give both the same last dimension")
    if k[0] not in (1, q[0]):
        raise Error(
            "tensor", f"{query} has batch {q[0]}, but {key} has {k[0]}", f"give {key} and {value} batch {q[0]}, or 1"
        )
    if q[1] != k[1] and not enable_gqa:
        raise Error(
            "tensor", f"{query} has {q[1]} heads, but {key} has {k[1]}", "pass enable_gqa=True for grouped queries"
        )
    if k[1] == 0 or q[1] % k[1]:
        raise Error("tensor", f"{query} has {q[1]} heads, no multiple of {key}'s {k[1]}", "repeat heads of one of them")
    if min(q) < 1 or min(k) < 1:
        raise Error("tensor", f"{query} is {list(q)} and {key} is {list(k)}: nothing to attend to")
