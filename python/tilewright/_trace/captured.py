"""An array that a mod reads: the indices that it has been given so far."""

from __future__ import annotations

from typing import Any, Tuple

from .._arrays import DTYPES, dtype_name, is_array, shape_of
from .expr import BOOL, FLOAT, INT, LONG, Expr, cast, is_literal, literal
from .once import once
from .refuse import refuse
from .values import Row, lift

_KINDS = {"bool": BOOL, "u32": LONG, "i64": LONG, **dict.fromkeys(("i8", "u8", "i16", "u16", "i32"), INT)}
_BOUNDS = {"uint8": (0, 255), "uint16": (0, 65535), "uint32": (0, 2**32 - 1), "bool": (0, 1)}


class Captured:
    """array[index...], where trailing indices may be missing."""

    __hash__ = object.__hash__

    def __init__(self, array: Any, name: str = "", index: Tuple[Expr, ...] = ()) -> None:
        self.array, self.name, self.index = array, name, index

    @property
    def shape(self) -> Any:
        whole = self.array.shape
        return whole if not self.index else shape_of(self.array)[len(self.index) :]

    @property
    def ndim(self) -> int:
        return len(self.array.shape) - len(self.index)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __bool__(self) -> bool:
        return bool(self.value())

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        if any(item is Ellipsis for item in indices):
            at = next(i for i, item in enumerate(indices) if item is Ellipsis)
            missing = self.ndim - len(indices) + 1
            indices = indices[:at] + (slice(None),) * missing + indices[at + 1 :]
        if len(indices) > self.ndim:
            refuse(
                f"a mod indexes a tensor of shape {list(self.shape)} with {len(indices)} indices",
                "one index for each dimension",
            )
        if not self.index and any(isinstance(item, slice) for item in indices) and not is_symbolic(tuple(indices)):
            once()
            return keep(self.array[plain(tuple(indices))], self.name)  # a part that may be indexed further
        return self._at(indices)

    def _at(self, indices: Tuple[Any, ...]) -> Any:
        if all(isinstance(item, slice) and item == slice(None) for item in indices):
            return self.value() if self.ndim == 0 else self
        head, rest = indices[0], indices[1:]
        if isinstance(head, slice):
            return Row([self._at((i, *rest)) for i in range(*head.indices(len(self)))])
        if isinstance(head, (list, tuple, Row)):
            return Row([self._at((item, *rest)) for item in head])
        if head is None:
            refuse("a mod adds a dimension to a captured tensor", "reshape it before the call")
        chosen = lift(head)
        if isinstance(chosen, Row):
            return Row([self._at((item, *rest)) for item in chosen])
        if chosen.kind == FLOAT:
            refuse("a mod indexes a tensor with a float", "write index.to(torch.int32)")
        if chosen.kind == BOOL:
            refuse("a mod indexes a tensor with a condition", "write torch.where(condition, x[1], x[0])")
        return Captured(self.array, self.name, (*self.index, self._wrapped(chosen)))._at(rest)

    def _wrapped(self, index: Expr) -> Expr:
        """Python's meaning of negative indices."""
        size = len(self)
        if is_literal(index):
            value = index.args[0]
            if not -size <= value < size:
                refuse(f"a mod reads element {value} of a dimension of {size}", "check the number")
            return literal(value + size if value < 0 else value)
        if index.never_negative:
            return index
        count = Expr(INT, "extent", (self.array, self.name, len(self.index)), 1)
        from .arithmetic import add
        from .expr import compare, select

        return select(compare("<", index, literal(0)), add(index, count), index)

    def value(self) -> Any:
        """The element, or what is left of the array as rows."""
        if self.ndim:
            return (
                Row([self[i] for i in range(len(self))])
                if self.ndim == 1
                else Row([self[i].value() for i in range(len(self))])
            )
        name = dtype_name(self.array)
        short = DTYPES.get(name)
        if short is None:
            refuse(f"a mod reads a tensor of dtype {name}", f"convert it to one of {', '.join(DTYPES)}")
        kind = _KINDS.get(short, FLOAT)
        low, high = _BOUNDS.get(name, (None, None))
        if len(self.index) > 5:
            refuse(f"a mod reads a tensor of {len(self.index)} dimensions", "reshape it to at most 5")
        index = tuple(cast(item, INT) if item.kind == BOOL else item for item in self.index)
        return Expr(kind, "load", (self.array, self.name, *index), low, high)

    def size(self, dim: Any = None) -> Any:
        return self.shape if dim is None else int(self.shape[dim])

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        product = 1
        for size in shape_of(self.array)[len(self.index) :]:
            product *= size
        return product

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def device(self) -> Any:
        return self.array.device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self.ndim and not self.index:  # of the whole array: what its framework does
            found = getattr(self.array, name)
            once()
            return method(found, self.name) if callable(found) else keep(found, self.name)
        if self.ndim and name in ("max", "min"):
            from .extremes import method_of_array

            return method_of_array(self.array, self.value(), name)
        return getattr(self.value(), name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .dispatch import call_torch

        return call_torch(function, args, kwargs or {})

    __array_ufunc__ = Expr.__array_ufunc__
    __array_function__ = Expr.__array_function__


def keep(result: Any, name: str) -> Any:
    """An array that was computed from captured ones is captured too."""
    return Captured(result, name) if is_array(result) else result


def plain(value: Any) -> Any:
    """The arrays themselves in place of what stands for them."""
    if isinstance(value, Captured) and not value.index:
        return value.array
    if isinstance(value, (tuple, list)):
        return type(value)(plain(item) for item in value)
    return value


def has_captured(value: Any) -> bool:
    """True where a value is, or holds, a captured array."""
    if isinstance(value, (tuple, list)):
        return any(map(has_captured, value))
    return has_captured(list(value.values())) if isinstance(value, dict) else isinstance(value, Captured)


def is_symbolic(value: Any) -> bool:
    """True where a value is known in the kernel alone."""
    if isinstance(value, (tuple, list)):
        return any(is_symbolic(item) for item in value)
    return isinstance(value, (Expr, Row)) or (isinstance(value, Captured) and (bool(value.index) or value.ndim == 0))


def method(function: Any, name: str) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_symbolic, (*args, *kwargs.values()))):
            from .dispatch import call

            return call(function.__name__, (Captured(function.__self__, name), *args), kwargs)
        return keep(function(*plain(args), **{key: plain(value) for key, value in kwargs.items()}), name)

    return run


def _operator(name: str, reflected: bool) -> Any:
    from .operators import BINARY
    from .values import apply

    function = BINARY[name]

    def run(self: Captured, other: Any) -> Any:
        if self.ndim and not self.index and not is_symbolic(other):
            once()
            whole = getattr(self.array, f"__{'r' if reflected else ''}{name}__")(plain(other))
            return keep(whole, self.name)
        return apply(function, other, self) if reflected else apply(function, self, other)

    return run


def _matmul(self: Captured, other: Any) -> Any:
    from .dispatch import call

    if not is_symbolic(self) and not is_symbolic(other):
        once()
        return keep(self.array @ plain(other), self.name)
    return call("matmul", (self, other), {})


def _install() -> None:
    from .operators import BINARY, COMPARISONS, UNARY, give_divmod
    from .values import unary

    for name in BINARY:
        setattr(Captured, f"__{name}__", _operator(name, False))
        if name not in COMPARISONS:
            setattr(Captured, f"__r{name}__", _operator(name, True))
    give_divmod(Captured)
    setattr(Captured, "__matmul__", _matmul)
    for name, one in UNARY.items():
        setattr(Captured, f"__{name}__", lambda self, one=one: unary(one, self))


_install()
