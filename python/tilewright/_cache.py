"""Attentions that flex_attention and its kin have made, by spec and device."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, Mapping, Tuple

from . import _recorder
from ._attention import Attention
from ._error import Error

_LIMIT = 1024
_attentions: "Dict[Tuple[str, str, bool], Attention]" = {}
_lock = threading.Lock()


def attention_for(spec: Dict[str, Any], device: str, names: Mapping[str, str], decode: bool = False) -> Attention:
    """The attention of a spec, made once. Kernels of the oldest are loaded again where there are very many.

    names: of q, k and v where the function that is called has other ones. decode: the call has few rows of q."""
    key = (json.dumps(spec), device, decode)
    found = _attentions.get(key)
    if found is None:
        try:
            found = Attention(spec, device, decode=decode)
        except Error as error:
            raise (error.renamed(names) if names else error) from None
        with _lock:
            found = _attentions.setdefault(key, found)
            if len(_attentions) > _LIMIT:
                del _attentions[next(iter(_attentions))]
    _recorder.note(found._spec)
    return found
