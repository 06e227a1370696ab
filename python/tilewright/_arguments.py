"""Arguments of the package's calls: numbers, pairs, and names that nothing reads."""

from __future__ import annotations

import importlib
import operator
import re
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from ._error import Error


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of Python or numpy."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or getattr(value, "ndim", None):
        raise Error("usage", f"{name} is {_shown(value)}", f"pass a whole number from {least} up")
    number = int(value.__index__())
    if number < least:
        raise Error("usage", f"{name} is {number}", f"pass a whole number from {least} up")
    return number


def whole_pair(name: str, value: Any, least: int = 1) -> Tuple[int, int]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise Error("usage", f"{name} is {_shown(value)}", "pass a pair of whole numbers")
    return whole(name, value[0], least), whole(name, value[1], least)


def block_size(value: Any) -> Tuple[int, int]:
    """BLOCK_SIZE: a number, or one for rows and one for columns."""
    sides = value if isinstance(value, (tuple, list)) else (value, value)
    if len(sides) != 2:
        raise Error("usage", f"BLOCK_SIZE is {value!r}", "pass a whole number, or a pair of them")
    return whole("BLOCK_SIZE", sides[0]), whole("BLOCK_SIZE", sides[1])


def flag(name: str, value: Any) -> bool:
    """True or False, of numpy too."""
    if not isinstance(value, (bool, int)) and type(value).__name__ not in ("bool_", "bool"):
        raise Error("usage", f"{name} is {_shown(value)}", "pass True or False")
    return bool(value)


def real(name: str, value: Any) -> Optional[float]:
    """A number of Python, numpy or torch; None stays None."""
    if value is None or type(value) is float:
        return value
    if (
        isinstance(value, bool)
        or isinstance(value, str)
        or not hasattr(value, "__float__")
        or getattr(value, "ndim", None)
    ):
        raise Error("usage", f"{name} is {_shown(value)}", "pass a number")
    return float(value.detach() if hasattr(value, "detach") else value)


def scalars_of(given: Optional[Mapping[str, Any]], declared: Optional[Mapping[str, Any]] = None) -> Dict[str, float]:
    """`scalars=`. declared: what the spec says of them."""
    found = {}
    for name, value in ({} if given is None else mapping("scalars", given)).items():
        if (declared or {}).get(name, {}).get("dtype") == "i64":
            _require_exact(name, value)
        found[name] = real(name, value)
        if found[name] is None:
            raise Error("usage", f"scalars holds None for {name}", "pass a number, or leave it out")
    return found  # type: ignore[return-value]


def _require_exact(name: str, value: Any) -> None:
    """Refuses a whole number that a float rounds. The library refuses all others."""
    try:
        whole_value = operator.index(value)
    except TypeError:
        return
    if abs(whole_value) > 2**53:
        raise Error(
            "usage",
            f'scalar "{name}" is {whole_value}, but must be a whole number from {-(2**53)} to {2**53} (i64)',
            "a seed as a scalar is a whole number from -2**53 to 2**53; one of 64 bits comes in a buffer: "
            '"buffers": {"seed": {"dtype": "i64", "shape": []}}',
        )


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """`buffers=` or `scalars=`."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Error("usage", f"{name} is {_shown(value)}", f"pass a dict: {name}={{'name': value}}")
    return value


def require_read(buffers: Mapping[str, Any], codes: Iterable[str]) -> None:
    """Refuses arrays that no snippet reads."""
    texts = list(codes)
    for name in buffers:
        if not any(re.search(rf"\b{re.escape(str(name))}\b", text) for text in texts):
            raise Error(
                "usage",
                f'buffers holds "{name}", but no snippet of the call reads it',
                "leave it out; a Python mod reads the arrays that it captures, a C++ one those that it names",
            )


def require_module(name: str) -> Any:
    """A framework that a call needs."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Error("usage", f"this call needs {name}, which is not installed", f"pip install {name}") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return f"a {type(value).__name__}" if len(text) > 40 else text
