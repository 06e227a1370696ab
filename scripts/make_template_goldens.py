#!/usr/bin/env python3
"""Renders tests/generator/goldens/*.jinja with Python's Jinja (Debian: python3-jinja2).

Writes NAME.golden for each NAME.jinja; NAME.json beside it holds the context, if there is one. The
goldens are committed: the C++ test jinja_golden_test.cpp renders the same templates with our engine
and compares bytes, and needs no Python. Run this after a template of the corpus has changed.
"""

import json
import pathlib
import sys

import jinja2

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "generator" / "goldens"


class Templates(jinja2.BaseLoader):
    """Reads bytes: a FileSystemLoader would translate line ends before Jinja sees them."""

    def get_source(self, environment, template):
        path = GOLDENS / template
        if not path.is_file():
            raise jinja2.TemplateNotFound(template)
        return path.read_bytes().decode(), str(path), lambda: True


def main():
    environment = jinja2.Environment(
        loader=Templates(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates = sorted(GOLDENS.glob("*.jinja"))
    for template in templates:
        context_file = template.with_suffix(".json")
        context = json.loads(context_file.read_text()) if context_file.exists() else {}
        text = environment.get_template(template.name).render(context)
        template.with_suffix(".golden").write_bytes(text.encode())
    print(f"{len(templates)} goldens written with Jinja {jinja2.__version__}")


if __name__ == "__main__":
    sys.exit(main())
