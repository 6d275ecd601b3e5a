"""In steps of thousands of nodes parents stay until their children's blocks are stored, as those below
the head join them. Here the daemons are told of so many; that some blocks meet in one moment takes more nodes
than these, so joining itself is tested in tests/unit/joined_blocks_test.cc."""

import collections
import json
import subprocess

from step import SONDE
from test_end import check_nobody_gave_up

MANY = 100_000  # more than BlockIntake::kJoinFrom, and so many that one row is left of each node


def values_by_host(step):
    """How many values of its own each node has in the archive."""
    done = subprocess.run(
        [SONDE, "--archive", step.archive, "export", "--scope", "node", "--to", "jsonl:-", step.name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    values = collections.Counter()
    for line in done.stdout.splitlines():
        told = json.loads(line)
        if "tags" in told:
            values[told["tags"]["host"]] += len(told["values"])
    return values


def hosts_of(step):
    return {node.host for node in step.nodes}


def test_every_nodes_own_series_are_there(make_step):
    step = make_step(nodes=8, expected=MANY, level=2)
    step.start()
    step.finish()
    check_nobody_gave_up(step)
    values = values_by_host(step)
    assert set(values) == hosts_of(step), values


def test_a_parent_that_dies_while_its_children_leave_costs_none_of_their_blocks(make_step):
    step = make_step(nodes=8, expected=MANY, level=2)
    step.start()
    for node in step.nodes:
        if node is not step.at(0):
            node.leave()
    step.at(0).kill()
    for node in step.nodes:
        if node is not step.at(0):
            node.daemon.wait_exit()
    step.finish()
    assert set(values_by_host(step)) >= hosts_of(step) - {step.at(0).host}
