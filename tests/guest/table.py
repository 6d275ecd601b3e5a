#!/usr/bin/python3
"""The table of docs/admin.md "Releases and control groups", from what scenarios showed.

  SONDE_SEEN=DIR ctest --test-dir build/release -C all-slurms -R '^guest'
  tests/guest/table.py DIR

The first command writes DIR/RELEASE.json besides testing, the second prints a row for each scenario:
exit code without and with telemetry, processes of Sonde's left after it, states of the nodes after it.
"""

import json
import pathlib
import sys

RELEASES = {"bookworm": "22.05", "trixie": "24.11", "sid": "26.05"}


def states(nodes):
    """Of all nodes, one word where they agree."""
    words = sorted({state.split()[0].lower() for state in nodes.values()})
    return " and ".join(words)


def left(seen):
    """How many processes; of nodes that are guests of their own, each has its own."""
    found = seen["left_at_all"].values()
    return sum(len(one) if isinstance(one, dict) else 1 for one in found)


def code(value):
    """Of a scenario that looked at more than an exit code: whether it came so far, and the nodes then."""
    if isinstance(value, list):
        return ", ".join(map(code, value))
    if isinstance(value, dict):
        if all(isinstance(state, str) for state in value.values()):
            return states(value) or "nothing"
        return ", ".join(f"{name} {code(one)}" for name, one in value.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def cell(seen):
    if seen is None:
        return "not run"
    if "failed" in seen:
        return f"failed: {seen['failed']}"
    without, watched = seen["without"], seen["with"]
    after = states(watched["nodes"])
    if states(without["nodes"]) != after:
        after = f"{states(without['nodes'])} / {after}"
    return f"{code(without['code'])} / {code(watched['code'])}; {left(watched)}; {after}"


def main():
    directory = pathlib.Path(sys.argv[1])
    seen = {}
    for release in RELEASES:
        path = directory / f"{release}.json"
        seen[release] = json.loads(path.read_text()) if path.exists() else {}
    names = dict.fromkeys(name for one in seen.values() for name, value in one.items()
                          if isinstance(value, dict) and {"with", "failed"} & value.keys())  # fmt: skip
    print("| step |", " | ".join(RELEASES.values()), "|")
    print("|---" * (len(RELEASES) + 1) + "|")
    for name in names:
        print(f"| {name} |", " | ".join(cell(seen[release].get(name)) for release in RELEASES), "|")


if __name__ == "__main__":
    main()
