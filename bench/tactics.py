#!/usr/bin/env python3
"""Which tactic is fastest: measures candidates on the workloads of `tilewright bench`, in turns.

    python3 bench/tactics.py --tilewright build/release/cli/tilewright [--suite dense|mods|all] [--only NAME]
        [--try q_tile=128,kv_tile=64]... [--budget-ms N] [--json F]

The table in generator/hopper_tactic.cpp was made with it. A candidate is the default with some
parameters replaced; `--try` names candidates in place of the usual ones. Kernels are compiled ahead,
on all cores. Times are medians by CUDA events, the L2 cache flushed before each call; the ratio is
default / candidate, so above 1 the candidate is faster.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

# Replacements of the default's parameters, per head_dim; those that do not fit are left out.
USUAL = {
    64: ["take_turns=1", "persistent=0", "q_tile=128", "q_tile=128,take_turns=1", "stages=3",
         "q_tile=192,kv_tile=128,block=192", "q_tile=192,kv_tile=128,block=192,persistent=0",
         "q_tile=192,kv_tile=128,block=192,take_turns=1"],
    128: ["take_turns=1", "persistent=0", "persistent=0,take_turns=1", "kv_tile=176,out_over_q=1",
          "kv_tile=176,out_over_q=1,take_turns=1", "kv_tile=64,stages=4", "out_over_q=1,stages=3"],
    256: ["take_turns=1", "persistent=0", "persistent=0,take_turns=1", "kv_tile=64",
          "kv_tile=64,take_turns=1"],
}


def candidates(workload, tries):
    """Specs with a forced tactic, by the candidate's name; the first is the default."""
    spec = workload["spec"]
    yield "default", spec
    for text in tries or USUAL.get(spec["head_dim"], []):
        parameters = {name: int(value) for name, value in (item.split("=") for item in text.split(","))}
        block = parameters.pop("block", None)
        forced = spec | {"tactic": {"name": "hopper"} | parameters}
        if block:
            forced["block"] = [block, 128]
        yield text, forced


def compile_all(executable, specs):
    def compile_one(spec):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(spec, file)
            file.flush()
            kernel = "forward_masked" if "mask_mod" in spec else "forward"
            result = subprocess.run([executable, "compile", file.name, "--kernel", kernel, "--target", "sm_90a"],
                                    capture_output=True, text=True)
            return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, specs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--suite", default="all", choices=["dense", "mods", "all"])
    parser.add_argument("--only", help="workloads whose name holds this")
    parser.add_argument("--try", dest="tries", action="append", metavar="NAME=N,...")
    parser.add_argument("--budget-ms", type=float, default=60)
    parser.add_argument("--json", metavar="F")
    arguments = parser.parse_args()

    rows = []
    for suite in ["dense", "mods"] if arguments.suite == "all" else [arguments.suite]:
        listed = subprocess.run([arguments.tilewright, "bench", "--suite", suite, "--list", "--device", "cuda"],
                                check=True, stdout=subprocess.PIPE)
        for workload in json.loads(listed.stdout):
            name = "%s d%d %d" % (workload["spec"].get("name", ""), workload["spec"]["head_dim"], workload["q_len"])
            if arguments.only and arguments.only not in name:
                continue
            for candidate, spec in candidates(workload, arguments.tries):
                rows.append({"workload": name, "candidate": candidate, "request": workload | {"spec": spec}})
    fits = compile_all(arguments.tilewright, [row["request"]["spec"] for row in rows])

    server = subprocess.Popen([arguments.tilewright, "bench", "--serve", "--device", "cuda"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    default_ms = None
    for row, fit in zip(rows, fits):
        if not fit:
            continue
        server.stdin.write(json.dumps(row["request"] | {"budget_ms": arguments.budget_ms}) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        if "error" in answer:
            print("%-24s %-44s %s" % (row["workload"], row["candidate"], answer["error"]["message"]))
            continue
        row["ms"] = answer["ms"]
        if row["candidate"] == "default":
            default_ms = row["ms"]
        print("%-24s %-44s %8.3f ms  %5.3f" % (row["workload"], row["candidate"], row["ms"], default_ms / row["ms"]))
        sys.stdout.flush()
    server.stdin.close()
    server.wait(timeout=30)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
