"""sink, k_scale and v_scale of a paged call: a number, an array by head (or by head and token), or C++."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping

from ._arguments import real
from ._arrays import shape_of
from ._error import Error
from ._trace import Snippet

_HEADS = {"sink": ("h", "num_q_heads"), "k_scale": ("h_kv", "num_kv_heads"), "v_scale": ("h_kv", "num_kv_heads")}


def factors_of(given: Mapping[str, Any], sizes: Mapping[str, int], tokens: int) -> Dict[str, Snippet]:
    """The snippets by their keys. sizes: num_q_heads, num_kv_heads. tokens: slots of the pool."""
    return {key: _snippet(key, value, sizes, tokens) for key, value in given.items() if value is not None}


def _snippet(key: str, value: Any, sizes: Mapping[str, int], tokens: int) -> Snippet:
    if isinstance(value, str):
        return Snippet(value, {}, {})
    if len(getattr(value, "shape", ())) == 0:
        return Snippet(_literal(real(key, value)), {}, {})
    head, heads = _HEADS[key]
    name, shape = f"{key}_values", shape_of(value)
    if shape == (sizes[heads],):
        return Snippet(f"{name}[{head}]", {name: value}, {}, {name: [{head}]})
    if key != "sink" and shape == (sizes[heads], tokens):
        return Snippet(f"{name}({head}, kv_token)", {name: value}, {}, {name: [{head}, set()]})
    by_token = f", or [{sizes[heads]}, {tokens}] by head and slot" if key != "sink" else ""
    raise Error(
        "tensor",
        f"{key} has shape {list(shape)}",
        f"pass a number, an array [{sizes[heads]}] by head{by_token}, or a snippet with buffers=",
    )


def _literal(number: Any) -> str:
    if number != number:
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return repr(float(number))
