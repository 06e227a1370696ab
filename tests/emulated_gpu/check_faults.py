#!/usr/bin/env python3
"""check_faults.py ROOT: each planted fault's text stands once in its template.

A day's tests plant few of the faults. This reads all of them from the tests' sources, as initialisers of test::Fault:
{"what", file, "text", "replacement"}, where file is a string, a constant, or a constant + "name".
"""

import pathlib
import re
import sys

TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|[-+*/<>=&|!?:;.,(){}\[\]]|\d+')
FAULTS_AT_LEAST = 180


def value(literal):
    return re.sub(r"\\(.)", lambda escaped: {"n": "\n", "t": "\t"}.get(escaped[1], escaped[1]), literal[1:-1])


def tokens_of(text):
    """Tokens without comments; strings that follow each other are one."""
    tokens = []
    for token in TOKEN.findall(text):
        if token.startswith("//"):
            continue
        if token.startswith('"') and tokens and isinstance(tokens[-1], tuple):
            tokens[-1] = (tokens[-1][0] + value(token),)
        else:
            tokens.append((value(token),) if token.startswith('"') else token)
    return tokens


def string_at(tokens, at, constants):
    """The string that an expression of strings, constants and + gives, and where it ends; ? for what is none."""
    result = ""
    while at < len(tokens) and tokens[at] not in (",", ";", "}"):
        part = tokens[at]
        if isinstance(part, tuple):
            result += part[0]
        elif part != "+":
            result += constants.get(part, "?")
        at += 1
    return result, at


def faults_of(text):
    """(what, file, text) of each fault."""
    constants = {}
    tokens = tokens_of(text)
    for i, token in enumerate(tokens):
        if token == "string" and i + 2 < len(tokens) and tokens[i + 2] == "=":
            constants[tokens[i + 1]] = string_at(tokens, i + 3, constants)[0]
        if token != "{" or not isinstance(tokens[i + 1], tuple) or tokens[i + 2] != ",":
            continue
        file, at = string_at(tokens, i + 3, constants)
        rest = tokens[at + 1:at + 5]
        is_fault = (len(rest) == 4 and isinstance(rest[0], tuple) and rest[1] == "," and isinstance(rest[2], tuple) and
                    rest[3] in ("}", ","))
        if is_fault and re.fullmatch(r"[\w/]+\.(hpp|hpp\.jinja|cu\.jinja)", file):
            yield tokens[i + 1][0], file, rest[0][0]


def template(root, file):
    for folder in ("tests/emulated_gpu/templates", "templates"):
        if (root / folder / file).is_file():
            return (root / folder / file).read_text()
    return ""


def main():
    root = pathlib.Path(sys.argv[1])
    count, stale = 0, 0
    for source in sorted((root / "tests").rglob("*.cpp")):
        if "Fault" not in source.read_text():
            continue
        for what, file, text in faults_of(source.read_text()):
            count += 1
            times = template(root, file).count(text)
            if times != 1:
                stale += 1
                print(f"{source.relative_to(root)}: \"{what}\": its text stands {times} times in {file}")
    print(f"{count} planted faults, {stale} whose text does not stand once")
    if count < FAULTS_AT_LEAST:
        print(f"There were {FAULTS_AT_LEAST} or more: does this script still read them?")
    return 0 if stale == 0 and count >= FAULTS_AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
