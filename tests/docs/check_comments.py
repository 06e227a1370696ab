"""check_comments.py ROOT: each file that a comment of a source names is there, under that name or the end of its path."""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = ("*.hpp", "*.cpp", "*.h", "*.c", "*.jinja")
FILE = re.compile(r"(?<![\w/<.*-])[\w./-]*\w\.(?:hpp|cpp|jinja|md|sh|py)(?:\.jinja)?\b")
# What comments call a file that is made while a program runs, and files of a test's own.
MADE = {"kernel.cpp", "a/first.hpp"}


def listed(root, *patterns):
    return subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", *patterns], cwd=root, check=True,
        text=True, stdout=subprocess.PIPE,
    ).stdout.split()  # fmt: skip


def ends_of(path):
    """a/b.hpp.jinja: also b.hpp.jinja, a/b.hpp and b.hpp, as includes name it."""
    for name in {path, path.removesuffix(".jinja")}:
        parts = name.split("/")
        yield from ("/".join(parts[i:]) for i in range(len(parts)))


def comment_of(line):
    if line.lstrip().startswith("#include"):
        return ""
    found = re.search(r"(?:^|\s)//(.*)", line)
    return found[1] if found else ""


def faults_of(source, text, known):
    for number, line in enumerate(text.splitlines(), 1):
        for name in FILE.findall(comment_of(line)):
            if name.lstrip("./") not in known and name not in MADE:
                yield f"{source}:{number}: there is no {name}"


def main():
    root = Path(sys.argv[1])
    known = {end for path in listed(root) for end in ends_of(path)}
    sources = [path for path in listed(root, *SOURCES) if not path.startswith("python/xla/")]
    texts = {path: (root / path).read_text() for path in sources if (root / path).exists()}
    if len(texts) < 500 or not list(faults_of("", "int x;  // see gone/place.hpp", known)):
        sys.exit("comments are not read")
    faults = [fault for path, text in texts.items() for fault in faults_of(path, text, known)]
    print("\n".join(faults))
    print(f"{len(texts)} sources, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
