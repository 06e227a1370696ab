#!/usr/bin/env python3
"""What a compile worker adds to a new snippet: `tilewright compile` of one kernel, with and without.

    bench/worker.py SPEC [--tilewright PATH] [--targets T,...] [--kernel NAME] [--repeats N]

From the start of the process to its end, in turn, each with a cache that knows which NVRTC there is
and has no kernel. On a busy machine: chrt -f 50 bench/worker.py ... (as root).
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time


def compile_ms(arguments, target, worker, notes):
    """Milliseconds of one process; `notes` is a cache directory to begin with, or None."""
    with tempfile.TemporaryDirectory() as cache:
        if notes:
            shutil.copytree(notes, cache, dirs_exist_ok=True)
        environment = dict(os.environ, TILEWRIGHT_CACHE=cache)
        if not worker:
            environment["TILEWRIGHT_WORKER"] = "off"
        command = [arguments.tilewright, "compile", arguments.spec, "--target", target]
        start = time.perf_counter()
        subprocess.run(command + ["--kernel", arguments.kernel], env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1e3 * (time.perf_counter() - start)


def known_notes(arguments, target, folder):
    """A cache directory that holds the notes of a first compile, but no kernel."""
    subprocess.run([arguments.tilewright, "compile", arguments.spec, "--target", target, "--kernel",
                    arguments.kernel], env=dict(os.environ, TILEWRIGHT_CACHE=folder), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".twk"):
                os.remove(os.path.join(path, name))
    return folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--tilewright", default="build/release/cli/tilewright")
    parser.add_argument("--targets", default="cpu,sm_90a")
    parser.add_argument("--kernel", default="mask_exact")
    parser.add_argument("--repeats", type=int, default=25)
    arguments = parser.parse_args()
    print("| target | with a worker | in the process | median of the differences |")
    print("| --- | ---: | ---: | ---: |")
    for target in arguments.targets.split(","):
        times = {True: [], False: []}
        with tempfile.TemporaryDirectory() as folder:
            notes = known_notes(arguments, target, folder)
            for i in range(arguments.repeats):
                for worker in (i % 2 == 0, i % 2 != 0):
                    times[worker].append(compile_ms(arguments, target, worker, notes))
        added = statistics.median(a - b for a, b in zip(times[True], times[False]))
        print(f"| {target} | {statistics.median(times[True]):.1f} ms | "
              f"{statistics.median(times[False]):.1f} ms | {added:.1f} ms |")


if __name__ == "__main__":
    main()
