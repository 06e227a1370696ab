#!/usr/bin/env python3
"""Compares two builds of Tilewright on one GPU or CPU: the workloads of `tilewright bench`, in turns.

    python3 bench/turns.py --before OLD/tilewright --after build/release/cli/tilewright
        [--device cuda|cpu] [--suite dense|mods|serving|all] [--only NAME]... [--rounds N] [--budget-ms N] [--least R] [--mean R] [--json F]

Each round measures every workload once with each build, the second build first in every other round. A time is
the median of the rounds' medians: on a GPU by CUDA events, with the L2 cache flushed before each call. The ratio is
before / after, so above 1 the second build is faster. Exit status 1 if one ratio is below --least or the
geometric mean of a suite is below --mean.
"""

import argparse
import json
import statistics
import sys

from peers import Tilewright


def name_of(workload):
    spec = workload["spec"]
    size = workload["inputs"] if "inputs" in workload else workload["q_len"]
    return "%s d%d %s" % (spec.get("name", ""), spec["head_dim"], size)


def measure(builds, workload, rounds, budget_ms):
    """Samples in ms of each build, in turns."""
    samples = {name: [] for name in builds}
    for i in range(rounds):
        for name in reversed(builds) if i % 2 else list(builds):
            samples[name].append(builds[name].measure(workload, budget_ms)["ms"])
    return samples


def measure_suite(suite, builds, arguments):
    """The rows of one suite, printed as they come."""
    rows = []
    for workload in builds["before"].workloads(suite):
        name = name_of(workload)
        if arguments.only and not any(text in name for text in arguments.only):
            continue
        samples = measure(builds, workload, arguments.rounds, arguments.budget_ms)
        before, after = (statistics.median(samples[build]) for build in ("before", "after"))
        rows.append({"suite": suite, "workload": name, "before_ms": before, "after_ms": after,
                     "ratio": before / after, "samples": samples})
        print("%-32s %9.4f %9.4f ms  %6.3f" % (name, before, after, before / after), flush=True)
    return rows


def verdict(suite, rows, arguments):
    """Prints the suite's last line. True if both bars are met."""
    least = min(rows, key=lambda row: row["ratio"])
    mean = statistics.geometric_mean(row["ratio"] for row in rows)
    is_met = least["ratio"] >= arguments.least and mean >= arguments.mean
    print("%s: geometric mean %.3f (bar %.3f), least %.3f (bar %.3f) %s: %s" % (
        suite, mean, arguments.mean, least["ratio"], arguments.least, least["workload"],
        "met" if is_met else "MISSED"), flush=True)
    return is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the executable to compare with")
    parser.add_argument("--after", required=True, help="the executable that may not be slower")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--suite", default="all", choices=["dense", "mods", "serving", "all"])
    parser.add_argument("--only", action="append", help="workloads whose name holds this; may be repeated")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget-ms", type=float, default=60, help="of measuring in a turn (default 60)")
    parser.add_argument("--least", type=float, default=0.98, help="bar for each ratio (default 0.98)")
    parser.add_argument("--mean", type=float, default=0.995, help="bar for a suite's mean (default 0.995)")
    parser.add_argument("--json", metavar="F")
    arguments = parser.parse_args()

    builds = {name: Tilewright(getattr(arguments, name), kept=2, device=arguments.device)
              for name in ("before", "after")}
    rows, is_met = [], True
    for suite in ["dense", "mods"] if arguments.suite == "all" else [arguments.suite]:
        of_suite = measure_suite(suite, builds, arguments)
        if of_suite:
            is_met = verdict(suite, of_suite, arguments) and is_met
        rows += of_suite
    for build in builds.values():
        build.close()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0 if rows and is_met else 1


if __name__ == "__main__":
    sys.exit(main())
