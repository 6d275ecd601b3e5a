"""What a table of panels is made of. Nothing here knows a data source."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Query:
    """The numbers of one metric; a counter is asked for as its rate per second, unless it is a total.

    metric      its name, or a variable such as "$gauge"
    legend      what a line is called; {tag} stands for the tag's value
    by          tags of which each value has a line; the others are put together
    where       {tag: value}: only these series. "a|b" is either, "!a|b" neither, "$name" a variable
    over        how nodes and tasks are put together: sum, mean, min, max, or count, which is their
                number; without it as the metric's declaration says
    percentile  in place of that: of the nodes or tasks
    total       of a counter what it has counted so far: for what is rare, and is bad once
    """

    metric: str
    legend: str = ""
    by: tuple = ()
    where: dict = dataclasses.field(default_factory=dict)
    over: str = ""
    percentile: int = 0
    total: bool = False


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel; without queries it shows `about` as text.

    about       what is seen and what it means, in a sentence or two
    kind        lines, stack (lines on top of each other), stat (one number), bars (a bar for each
                line, of its mean or greatest value), worst (a table of ten)
    axis        what a number counts, where the unit alone does not say it: "CPUs". A rate of seconds
                is seconds per second, so it has to say CPUs, tasks, or share
    needs       what a step needs to have this, where its level alone does not say it
    thresholds  [(from this value on, colour)]; only where a value is bad by itself
    calc        of stat and bars: lastNotNull, mean or max of the range
    least       the ten with the least values are the worst
    repeat      the variable of which each value has a panel
    only        the data source that alone can answer it
    """

    title: str
    about: str
    queries: tuple = ()
    kind: str = "lines"
    axis: str = ""
    needs: str = ""
    thresholds: tuple = ()
    calc: str = "lastNotNull"
    least: bool = False
    repeat: str = ""
    only: str = ""
    width: int = 12
    height: int = 8


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    panels: tuple
    collapsed: bool = False


@dataclasses.dataclass(frozen=True)
class Variable:
    """A choice among the values of a tag.

    of      a metric that has the tag, and that every step of level 2 has: to look for what is not there is an error
    every   whether all values may be chosen together, as they are at first
    many    whether several may
    """

    name: str
    label: str
    of: str
    tag: str
    every: bool = False
    many: bool = False


@dataclasses.dataclass(frozen=True)
class MetricVariable:
    """A choice among the application's own metrics, several at a time: its counters, or the others."""

    name: str
    label: str
    counters: bool


@dataclasses.dataclass(frozen=True)
class Dashboard:
    """A dashboard. `scope`: step (all of a step), node (one node of it), steps (several steps)."""

    uid: str
    title: str
    about: str
    scope: str
    rows: tuple
    variables: tuple = ()
    refresh: str = "5s"
