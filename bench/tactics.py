#!/usr/bin/env python3
"""Which tactic is fastest: measures candidates on the workloads of `tilewright bench`, in turns.

    python3 bench/tactics.py --tilewright build/release/cli/tilewright [--suite dense|mods|all] [--only NAME]
        [--try q_tile=192,kv_tile=80,block=192x80]... [--templates NAME=FOLDER]... [--budget-ms N] [--json F]

The table in generator/tactic/hopper_tactic.cpp was made with it. A candidate is the default with some
parameters replaced; `--try` names candidates in place of the usual ones, with the executable's templates
and with those of each folder, or with @NAME behind it with those alone. Kernels are compiled ahead, on
all cores. Times are medians by CUDA events, the L2 cache flushed before each call; the ratio is
default / candidate, so above 1 the candidate is faster.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

from peers import Tilewright

# Replacements of the default's parameters, per head_dim; those that do not fit are left out.
USUAL = {
    64: ["take_turns=1", "persistent=0", "q_tile=128", "q_tile=128,take_turns=1", "stages=3", "q_stages=1",
         "q_tile=192,kv_tile=128,block=192x128", "q_tile=192,kv_tile=128,block=192x128,persistent=0",
         "q_tile=192,kv_tile=128,block=192x128,take_turns=1"],
    128: ["take_turns=1", "persistent=0", "persistent=0,take_turns=1", "q_tile=128", "q_tile=128,take_turns=1",
          "q_tile=192,kv_tile=64", "kv_tile=64,stages=4", "out_over_q=1,stages=3", "q_stages=1"],
    256: ["take_turns=1", "persistent=0", "persistent=0,take_turns=1", "kv_tile=64",
          "kv_tile=64,take_turns=1"],
}


def force(spec, text):
    """spec with the tactic that text names, as q_tile=192,kv_tile=80,block=192x80; as it is where text is empty."""
    if not text:
        return spec
    parameters = dict(item.split("=") for item in text.split(","))
    block = parameters.pop("block", None)
    forced = spec | {"tactic": {"name": "hopper"} | {name: int(value) for name, value in parameters.items()}}
    if block:
        forced["block"] = [int(side) for side in block.split("x")]
    return forced


def candidates(workload, tries, templates):
    """(name, spec with a forced tactic, folder of templates) of each candidate; the first is the default."""
    spec = workload["spec"]
    folders = dict(named.split("=", 1) for named in templates)
    yield "default", spec, ""
    for text in tries or ["", *USUAL.get(spec["head_dim"], [])]:
        text, at, only = text.partition("@")
        for name in [only] if at else ["", *folders]:
            if text or name:
                yield (text + " " + name).strip(), force(spec, text), folders.get(name, "")


def environment(folder):
    return os.environ | ({"TILEWRIGHT_TEMPLATES": folder} if folder else {})


def compile_all(executable, rows):
    def compile_one(row):
        spec = row["request"]["spec"]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(spec, file)
            file.flush()
            kernel = "forward_masked" if "mask_mod" in spec else "forward"
            result = subprocess.run([executable, "compile", file.name, "--kernel", kernel, "--target", "sm_90a"],
                                    capture_output=True, text=True, env=environment(row["templates"]))
            return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, rows))


def measure_workload(servers, rows, rounds, budget_ms):
    """Candidates of one workload take turns; each gets the median of its rounds. servers: a Tilewright
    for each folder of templates."""
    for row in rows * rounds:
        if "error" in row:
            continue
        try:
            answer = servers[row["templates"]].measure(row["request"], budget_ms)
            row.setdefault("samples", []).append(answer["ms"])
        except RuntimeError as error:
            row["error"] = str(error)
    for row in rows:
        if "error" in row:
            print("%-24s %-44s %s" % (row["workload"], row["candidate"], row["error"]))
            continue
        row["ms"] = statistics.median(row["samples"])
        print("%-24s %-44s %8.3f ms  %5.3f" % (row["workload"], row["candidate"], row["ms"],
                                               rows[0].get("ms", row["ms"]) / row["ms"]))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--suite", default="all", choices=["dense", "mods", "all"])
    parser.add_argument("--only", action="append", help="workloads whose name holds this; may be repeated")
    parser.add_argument("--try", dest="tries", action="append", metavar="NAME=N,...")
    parser.add_argument("--templates", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget-ms", type=float, default=60)
    parser.add_argument("--json", metavar="F")
    arguments = parser.parse_args()

    rows = []
    for suite in ["dense", "mods"] if arguments.suite == "all" else [arguments.suite]:
        for workload in Tilewright(arguments.tilewright).workloads(suite):
            name = "%s d%d %d" % (workload["spec"].get("name", ""), workload["spec"]["head_dim"], workload["q_len"])
            if arguments.only and not any(text in name for text in arguments.only):
                continue
            for candidate, spec, folder in candidates(workload, arguments.tries, arguments.templates):
                rows.append({"workload": name, "candidate": candidate, "templates": folder,
                             "request": workload | {"spec": spec}})
    fits = compile_all(arguments.tilewright, rows)
    rows = [row for row, fit in zip(rows, fits) if fit]

    # A workload's candidates keep their data on the GPU, so that they are made once for all rounds.
    kept = max(collections.Counter((row["templates"], row["workload"]) for row in rows).values(), default=1)
    servers = {folder: Tilewright(arguments.tilewright, environment=environment(folder), kept=kept)
               for folder in {row["templates"] for row in rows}}
    for _, of_workload in itertools.groupby(rows, lambda row: row["workload"]):
        measure_workload(servers, list(of_workload), arguments.rounds, arguments.budget_ms)
    for server in servers.values():
        server.close()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
