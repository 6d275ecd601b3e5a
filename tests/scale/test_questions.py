"""Questions to a head of 1,000 and of 32,000 nodes (bench/questions.cc): what one costs does not grow with their number.

What a question has to know of all nodes is kept for the next one: looking at each of them would cost 32 times as much.
The first question after a node has come or gone, and a row that says so, looks at all.
"""

import os

import growth
import pytest

QUESTIONS = ("whole_step", "whole_step_all", "whole_step_lacking", "part", "by_host", "by_host_anew", "notes")


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_QUESTIONS"])


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_question_costs_does_not_grow(cost, question):
    cost.check_growth(question, 2)


def test_what_a_subscriber_costs_that_goes_does_not_grow(cost):
    cost.check_growth("subscriber_goes", 5)


def test_the_first_question_after_a_change_looks_at_each_node_once(cost):
    cost.check_growth("after_a_change", growth.MANY / growth.FEW)
