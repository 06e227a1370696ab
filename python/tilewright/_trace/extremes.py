"""max and min of torch along one dimension, which are pairs."""

from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, NoReturn, Tuple

from .._arrays import framework
from .refuse import refuse


class Extremes(NamedTuple):
    """What torch.max(x, dim) returns; indices are not translated."""

    values: Any
    places: Any = None

    @property
    def indices(self) -> NoReturn:
        _no_indices()

    def __getitem__(self, index: Any) -> Any:
        return self.values if index in (0, -2) else _no_indices()

    def __iter__(self) -> Any:
        _no_indices()


def _no_indices() -> NoReturn:
    refuse(
        "a mod asks where the largest or smallest element lies", "torch.amax(x, dim) and torch.amin(x, dim) give values"
    )


def extremes(name: str, found: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The result of torch's function of this name as torch has it."""
    with_dim = "dim" in kwargs or (len(args) > 1 and isinstance(args[1], int))
    return Extremes(found) if name in ("max", "min") and with_dim else found


def method_of_row(row: Any, name: str) -> Any:
    """max or min of a row that numpy or torch has, which differ where a dimension is given."""
    from .dispatch import call

    def run(*args: Any, **kwargs: Any) -> Any:
        if args and "torch" in sys.modules:
            refuse(
                f"a mod calls .{name}({args[0]!r}) of a row",
                f"write torch.a{name}(x, {args[0]!r}), or np.{name}(x, axis={args[0]!r})",
            )
        return extremes(name, call(name, (row, *args), kwargs), (row, *args), kwargs)

    return run


def method_of_array(array: Any, row: Any, name: str) -> Any:
    """The same of a part of an array."""
    from .dispatch import call

    def run(*args: Any, **kwargs: Any) -> Any:
        found = call(name, (row, *args), kwargs)
        return extremes(name, found, (row, *args), kwargs) if framework(array) == "torch" else found

    return run
