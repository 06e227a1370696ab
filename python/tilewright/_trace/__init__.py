"""Python score_mods and mask_mods as C++ snippets: the function runs once, with values that record what it does."""

from .expr import scalar
from .snippet import Snippet, trace, trace_mod

__all__ = ["Snippet", "scalar", "trace", "trace_mod"]
