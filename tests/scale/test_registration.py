"""All nodes come to a real head through gateways, and go (bench/registration.cc): with 32,000 each costs what it does with
1,000, over sealed sockets and until the report is there. A quiet machine shows 1.1; work that looks at all nodes for each
of them shows 30."""

import os

import growth
import pytest


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_REGISTRATION"])


@pytest.mark.parametrize("phase", ["gateways", "gateways_end"])
def test_what_a_node_costs_does_not_grow(cost, phase):
    cost.check_growth(phase, 2)
