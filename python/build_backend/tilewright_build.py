"""scikit-build-core, which finds the library's sources one folder up; an sdist gets a copy of them in library/."""

import os
import shutil
from contextlib import contextmanager

from scikit_build_core.build import *  # noqa: F401,F403
from scikit_build_core.build import build_sdist as _build_sdist

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.join(_HERE, "library")
# What CMakeLists.txt adds with add_subdirectory: the library and what check compares with.
_PARTS = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "tilewright.hpp",
    "base",
    "generator",
    "cache",
    "runtime",
)
_PARTS += ("c", "cmake", "templates", "verify", "fuzz")


@contextmanager
def _library_inside():
    if os.path.exists(_LIBRARY):  # an unpacked sdist
        yield
        return
    try:
        for part in _PARTS:
            source, copy = os.path.join(_HERE, "..", part), os.path.join(_LIBRARY, part)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copytree(source, copy) if os.path.isdir(source) else shutil.copy(source, copy)
        yield
    finally:
        shutil.rmtree(_LIBRARY, ignore_errors=True)


def build_sdist(sdist_directory, config_settings=None):
    with _library_inside():
        return _build_sdist(sdist_directory, config_settings)
