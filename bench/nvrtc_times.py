#!/usr/bin/env python3
"""What NVRTC takes to compile kernels of a spec, without a GPU: milliseconds of CPU, by its own phases.

    bench/nvrtc_times.py KERNEL SPEC... [--target T] [--rounds N] [--tilewright PATH...] [--nvrtc LIBRARY]

The specs' kernels (and those of several builds, if several executables are given) are compiled in
turns, and the least of all rounds counts: other work on the machine only ever adds. The first
compile of the process, which loads NVRTC's parts, is left out.
"""

import argparse
import csv
import ctypes
import json
import os
import subprocess
import tempfile
import time


class Nvrtc:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)

    def compile(self, source, target, options):
        """Milliseconds of this process's CPU, and those of each of NVRTC's phases."""
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as times:
            options = [f"--gpu-architecture={target}", "--no-cache", "--no-source-include",
                       f"-time={times.name}", *options]
            arguments = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
            program = ctypes.c_void_p()
            self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0,
                                            None, None)
            start = time.process_time()
            status = self.library.nvrtcCompileProgram(program, len(options), arguments)
            total = 1e3 * (time.process_time() - start)
            self.library.nvrtcDestroyProgram(ctypes.byref(program))
            if status != 0:
                raise SystemExit(f"NVRTC failed ({status})")
            rows = [row for row in csv.reader(times) if len(row) == 4 and row[3].strip() == "ms"]
            return [total] + [float(row[2]) for row in rows]


def rendered(tilewright, spec, kernel, target):
    command = [tilewright, "render", spec, "--kernel", kernel, "--target", target]
    facts = json.loads(subprocess.run(command + ["--json"], check=True, capture_output=True).stdout)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text, facts["options"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--tilewright", nargs="+", default=["build/release/cli/tilewright"])
    parser.add_argument("--nvrtc", default="libnvrtc.so.13")
    arguments = parser.parse_args()
    nvrtc = Nvrtc(arguments.nvrtc)
    subjects = {(spec, tilewright): rendered(tilewright, spec, arguments.kernel, arguments.target)
                for spec in arguments.specs for tilewright in arguments.tilewright}
    text, options = next(iter(subjects.values()))
    nvrtc.compile(text, arguments.target, options)
    least = {}
    for _ in range(arguments.rounds):
        for name, (text, options) in subjects.items():
            times = nvrtc.compile(text, arguments.target, options)
            least[name] = [min(pair) for pair in zip(least.get(name, times), times)]
    print("| spec | build | total | front end | optimizer | ptxas |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for (spec, tilewright), times in least.items():
        name = os.path.splitext(os.path.basename(spec))[0]
        print(f"| {name} | {tilewright} | " + " | ".join(f"{ms:.0f}" for ms in times) + " |")


if __name__ == "__main__":
    main()
