"""trace(): a Python mod as a Snippet."""

from __future__ import annotations

import inspect
import keyword
import re
from contextlib import contextmanager, nullcontext
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .._arrays import DTYPES, dtype_name, shape_of
from .._error import Error
from .._names import scalars_by_name
from .cache import Traced, identity, keep, kept, lasts, the_mod
from .capture import Capture, torch_is_loaded
from .dispatch import make_torch_mode
from .expr import BOOL, FLOAT, INT, Expr, cast, symbol
from .once import running
from .printing import Printer
from .refuse import place_of, place_of_failure
from .values import Row, lift

_INDICES = ("b", "h", "q_idx", "kv_idx")
_SIZE_OF = {"b": "batch", "h": "num_q_heads", "q_idx": "q_len", "kv_idx": "kv_len"}
_TAKEN = set(
    """b h h_kv q_idx kv_idx q_len kv_len num_q_heads num_kv_heads q_token kv_token score q k v out lse q_begin kv_begin
    page_table page_begin q_offset kv_offset tanh exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan erf erfc pow fabs fmin
    fmax floor ceil abs sign min max clamp select floor_div floor_mod INFINITY alignas alignof and and_eq asm auto bitand
    bitor bool break case catch char class compl concept const const_cast constexpr continue decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short
    signed sizeof static static_assert static_cast struct switch template this throw true try typedef typeid typename union
    unsigned using virtual void volatile wchar_t while xor xor_eq NULL assert size""".split()
)


class Snippet:
    """A mod as C++: code, buffers (arrays by name) and scalars (defaults by name; None where each call gives one)."""

    def __init__(
        self,
        code: str,
        buffers: Dict[str, Any],
        scalars: Dict[str, Any],
        indices: Optional[Dict[str, List[Set[str]]]] = None,
    ) -> None:
        self.code, self.buffers, self.scalars = code, buffers, scalars
        self._indices = indices or {}
        self._traced: Optional[Traced] = None

    def __repr__(self) -> str:
        shapes = {name: list(shape_of(array)) for name, array in self.buffers.items()}
        return f"tilewright.Snippet({self.code!r}, buffers={shapes}, scalars={self.scalars})"

    def declarations(self, sizes: Mapping[str, int]) -> Dict[str, Any]:
        """What a spec says of the buffers. Dimensions take a call's name where the snippet reads them by that index."""
        return {name: self._declare(name, array, sizes) for name, array in self.buffers.items()}

    def _declare(self, name: str, array: Any, sizes: Mapping[str, int]) -> Dict[str, Any]:
        shape: List[Any] = []
        for size, indices in zip(shape_of(array), self._indices.get(name, [set() for _ in array.shape])):
            names = {_SIZE_OF.get(index) for index in indices}
            if names <= {"q_len", "kv_len"} and names and size == sizes.get("kv_len"):
                names = {"kv_len"}
            only = next(iter(names)) if len(names) == 1 else None
            shape.append(only if only and sizes.get(only) == size else None)
        return {"dtype": _read_as(array, name), "shape": shape}

    def reads(self, names: Sequence[str]) -> bool:
        """Whether the code has one of the words."""
        return any(re.search(rf"\b{name}\b", self.code) for name in names)

    def scalar_declarations(self) -> Dict[str, Any]:
        declared: Dict[str, Any] = {}
        for name, default in self.scalars.items():
            declared[name] = {"dtype": "f32" if isinstance(default, float) else "i32"}
            if default is not None:
                declared[name]["default"] = default
        return declared


def _read_as(array: Any, name: str) -> str:
    dtype = dtype_name(array)
    short = DTYPES.get(dtype)
    if short is None:
        raise Error("tensor", f"{name} has dtype {dtype}", f"convert it to one of {', '.join(DTYPES)}")
    return short


class _Names:
    """Names for arrays: the user's own where C++ allows them."""

    def __init__(self, taken: Mapping[str, Any]) -> None:
        self.buffers: Dict[str, Any] = {}
        self._taken = dict(taken)

    def __call__(self, array: Any, wanted: str) -> str:
        for name, held in (*self.buffers.items(), *self._taken.items()):
            if held is array:
                self.buffers[name] = held
                return name
        base = re.sub(r"__+", "_", re.sub(r"\W", "_", wanted, flags=re.ASCII)).strip("_") or "buffer"
        base = (
            f"x{base}"
            if base[0].isdigit() or base.startswith(("tw_", "TW_", "tilewright")) or keyword.iskeyword(base)
            else base
        )
        name, count = base, 2
        while self.is_taken(name):
            name, count = f"{base}_{count}", count + 1
        self.buffers[name] = array
        return name

    def is_taken(self, name: str) -> bool:
        return name in _TAKEN or name in self.buffers or name in self._taken


def trace(fn: Any) -> Snippet:
    """A Python score_mod(score, b, h, q_idx, kv_idx) or mask_mod(b, h, q_idx, kv_idx) as a Snippet.

    Refusals are tw.Error with the file and line of the mod, and the form to write."""
    return trace_mod(fn, "score" if _arguments(fn) >= 5 else "mask", {}, {})


def _arguments(fn: Any) -> int:
    if not callable(fn):
        raise Error("usage", f"a mod is a {type(fn).__name__}", "pass a Python function, or C++ as a string")
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 5
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 5
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def _require_arguments(fn: Any, kind: str) -> None:
    wanted = (*(("score",) if kind == "score" else ()), *_INDICES)
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*wanted)
    except TypeError:
        raise Error(
            "usage",
            f"{kind}_mod takes {signature}",
            f"a {kind}_mod takes ({', '.join(wanted)})",
            place_of(fn),
        ) from None


@contextmanager
def _failures_of_the_mod() -> Iterator[None]:
    """What a mod raises, at its line."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise Error(
            "snippet",
            f"the mod raises {kind}: {error}",
            "a mod runs once, with values that are only known in the kernel",
            place_of_failure(error),
        ) from error


def trace_mod(fn: Any, kind: str, sizes: Mapping[str, int], taken: Mapping[str, Any]) -> Snippet:
    """kind: "score" or "mask". sizes: of the call, where known. taken: arrays that have names already."""
    if isinstance(fn, Snippet):
        return fn
    if isinstance(fn, str):
        return Snippet(fn, {}, {})
    if not callable(fn):
        raise Error("usage", f"{kind}_mod is a {type(fn).__name__}", "pass a Python function, or C++ as a string")
    fn = the_mod(fn)
    key = (identity(fn), kind, tuple(sizes.items()), tuple(taken))
    for traced, code, scalars, indices in kept(key):
        arrays = traced.arrays(fn, taken)
        if arrays is not None:
            buffers = {name: arrays[place] for name, place in traced.places.items()}
            return _of_trace(traced, Snippet(code, buffers, scalars, indices))
    return _traced(fn, kind, sizes, taken, key)


def _one_number(returned: Any, kind: str, fn: Any) -> Expr:
    """What a mod returns, as one value."""
    if returned is None or isinstance(returned, (str, bytes, dict, set)):
        shown = "nothing" if returned is None else f"a {type(returned).__name__}"
        raise Error("snippet", f"{kind}_mod returns {shown}", "return one number for one score", place_of(fn))
    result = lift(returned)
    while isinstance(result, Row):
        if len(result) != 1:
            raise Error(
                "snippet", f"{kind}_mod returns {len(result)} values", "return one number for one score", place_of(fn)
            )
        result = lift(result[0])
    return result  # type: ignore[no-any-return]


def _of_trace(traced: Traced, snippet: Snippet) -> Snippet:
    snippet._traced = traced
    return snippet


def _traced(fn: Any, kind: str, sizes: Mapping[str, int], taken: Mapping[str, Any], key: Any) -> Snippet:
    _require_arguments(fn, kind)
    capture = Capture()
    symbols = [symbol(name, INT, 0, sizes.get(_SIZE_OF[name], 2**31) - 1) for name in _INDICES]
    if kind == "score":
        symbols.insert(0, symbol("score", FLOAT))
    with make_torch_mode() if torch_is_loaded() else nullcontext(), running(capture), _failures_of_the_mod():
        copy, check = capture.pair(fn, "")
        result = _one_number(copy(*symbols), kind, fn)
    names = _Names(taken)
    root = cast(result, FLOAT if kind == "score" else BOOL)
    scalars, indices = _gather(root, names)
    try:
        code = Printer(names).snippet(root, lambda name: names.is_taken(name) or name in scalars)
    except RecursionError:
        raise Error(
            "snippet",
            f"{kind}_mod is a chain of too many operations",
            "compute the sum of a loop in parts, or before the call",
            place_of(fn),
        ) from None
    snippet = Snippet(code, names.buffers, scalars, indices)
    if not capture.lasting or not lasts(capture.arrays, names.buffers):
        return snippet
    traced = Traced(check, capture.arrays, names.buffers, taken)
    keep(key, (traced, code, scalars, indices))
    return _of_trace(traced, snippet)


def _gather(root: Expr, names: _Names) -> Tuple[Dict[str, Any], Dict[str, List[Set[str]]]]:
    """Scalars with their defaults, and what each dimension of each buffer is read by."""
    scalars: Dict[str, Any] = {}
    indices: Dict[str, List[Set[str]]] = {}
    seen: Set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.extend(a for a in reversed(node.args) if isinstance(a, Expr))
        if node.op == "scalar":
            scalars = scalars_by_name(scalars, {node.args[0]: node.args[1]})
        if node.op == "load":
            name = names(node.args[0], node.args[1])
            dims = indices.setdefault(name, [set() for _ in node.args[2:]])
            for dim, index in zip(dims, node.args[2:]):
                dim.add(index.args[0] if index.op == "symbol" else "?")
    return scalars, indices


__all__ = ["Snippet", "trace", "trace_mod"]
