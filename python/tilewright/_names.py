"""Names of arrays and scalars that several snippets of a call share."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping

from ._error import Error


def arrays_by_name(*groups: Mapping[str, Any]) -> Dict[str, Any]:
    """All arrays. One name of two arrays is refused, as a kernel has one array of a name."""
    found: Dict[str, Any] = {}
    for group in groups:
        for name, array in group.items():
            if found.setdefault(name, array) is not array:
                raise Error("usage", f'two different arrays are named "{name}"', "rename one of them")
    return found


def scalars_by_name(*groups: Mapping[str, Any]) -> Dict[str, Any]:
    """All defaults of scalars. One name of two defaults is refused."""
    found: Dict[str, Any] = {}
    for group in groups:
        for name, default in group.items():
            held = found.setdefault(name, default)
            if held != default or type(held) is not type(default):
                raise Error(
                    "usage",
                    f'tw.scalar("{name}") is given as {held!r} and as {default!r}',
                    "give it one default, or rename one",
                )
    return found


def require_known(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses values of scalars that no snippet reads."""
    names = sorted(known)
    for name in given:
        if name not in names:
            raise Error(
                "usage",
                f'scalars holds "{name}", but no snippet of the call reads it',
                f"its scalars are {', '.join(names)}" if names else "leave it out",
            )


__all__ = ["arrays_by_name", "require_known", "scalars_by_name"]
