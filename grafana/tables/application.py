"""What the application tells of itself."""

from generator.dashboard import text
from generator.model import Dashboard, MetricVariable, Panel, Query, Row
from tables.common import STEP

TELLS = "a program that sets it (libsonde, an exporter that is joined, or values that are pushed)"
FUNCTIONS = "--telemetry-functions, or level 4, and code compiled with -finstrument-functions"

ABOUT = Row("About", (
    text("", "The application's own metrics: those that it tells by libsonde, by an exporter, or that are "
         "pushed. Choose them above.\n\n**Figures of merit** are one number for a run, and no series: they "
         "are on [the step's page](${page}/#/job/$job), with remarks and the times of phases.",
         width=24, height=3),
))
GAUGES = Row("Gauges", (
    Panel("$gauge", "What the application has set: the mean of its tasks and the extremes.",
          (Query("$gauge", "mean", over="mean"), Query("$gauge", "least", over="min"),
           Query("$gauge", "most", over="max")), repeat="gauge", needs=TELLS),
))
COUNTERS = Row("Counters, per second", (
    Panel("$counter", "The rate of all tasks together.", (Query("$counter", "all tasks"),),
          repeat="counter", needs=TELLS),
))
PHASES = Row("Phases and functions", (
    Panel("Tasks in each phase", "Time that tasks spent in phases; it is added when a phase ends.",
          (Query("phase_seconds_total", "{phase}", by=("phase",)),), kind="stack", axis="tasks",
          needs="a program that tells phases"),
    Panel("Calls of functions", "Calls per second, by function.",
          (Query("function_calls_total", "{function}", by=("function",)),), needs=FUNCTIONS),
    Panel("Time in functions", "Threads in a function, with all that it calls.",
          (Query("function_seconds_total", "{function}", by=("function",)),), axis="tasks",
          needs=FUNCTIONS + ", and SONDE_FUNCTION_SECONDS=1"),
    Panel("CPU time of the tasks", "To see beside it whether the program works.",
          (Query("task_cpu_seconds_total", "{mode}", by=("mode",)),), kind="stack", axis="CPUs"),
))

DASHBOARD = Dashboard(
    "sonde-application", "Sonde: the application", "The application's own metrics, phases and functions.",
    "step", (ABOUT, PHASES, GAUGES, COUNTERS),
    (STEP, MetricVariable("gauge", "Gauges", False), MetricVariable("counter", "Counters", True)))
