"""What watching a step costs, and whether all of it is there."""

from generator.model import Dashboard, Panel, Query, Row
from tables.common import STEP, of_nodes


def by_host(title, about, metric, **more):
    return Panel(title, about, (Query(metric, "{host}", by=("host",)),), **more)


THERE = Row("Is all of it there?", (
    Panel("Nodes that report", "Fewer than before: a node has ended, or is lost.",
          (Query("sonde_memory_bytes", "nodes", over="count"),), width=8),
    Panel("Samples", "Of all nodes, per second: nodes times samples a second.",
          (Query("sonde_samples_total", "taken"),), width=8),
    Panel("Coverage", "Samples that arrived, of those that a complete record would have.",
          (Query("sonde_coverage_ratio"),), kind="stat", only="prometheus", width=8,
          thresholds=((0, "bad"), (0.9, "warn"), (0.99, "ok"))),
    Panel("Coverage", "The share of samples that arrived is on [the step's page](${page}/#/job/$job), with the "
          "reason for those that did not.", only="opentsdb", width=8),
    Panel("Samples that were not taken", "The node was too busy, or suspended.",
          (Query("sonde_skipped_ticks_total", "skipped"), Query("sonde_late_ticks_total", "late")), width=12),
    Panel("Samples that no block holds", "Out of order, or forgotten for lack of memory.",
          (Query("sonde_dropped_samples_total", "dropped"),), width=12),
    by_host("Nodes that skip samples", "Means over the time shown.", "sonde_skipped_ticks_total", kind="worst"),
    by_host("Nodes with fewest samples", "Means over the time shown.", "sonde_samples_total", kind="worst",
            least=True),
))
COST = Row("What it costs", (
    Panel("CPU time", "Of all daemons together.", (Query("sonde_cpu_seconds_total", "all daemons"),), axis="CPUs"),
    Panel("CPU time of a daemon", "", of_nodes("sonde_cpu_seconds_total"), axis="share"),
    Panel("Memory of a daemon", "", of_nodes("sonde_memory_bytes")),
    Panel("Time to take samples", "Of a daemon: the share of the time in which it reads the kernel's files.",
          of_nodes("sonde_sample_seconds_total"), axis="share"),
    Panel("Time by source", "Of all daemons together.",
          (Query("sonde_source_seconds_total", "{source}", by=("source",)),), kind="stack", axis="share"),
    Panel("Sent", "By all daemons together, what they pass on included.",
          (Query("sonde_sent_bytes_total", "sent"),)),
    Panel("Stored", "What the step's series take in the archive so far.", (Query("sonde_db_bytes", "stored"),)),
    Panel("On its way", "On the node with most: waiting for a link, and sent but not acknowledged.",
          (Query("sonde_queued_bytes", "waiting"), Query("sonde_unacknowledged_bytes", "not acknowledged"))),
))
NODES = Row("By node", (
    by_host("Memory", "Means over the time shown.", "sonde_memory_bytes", kind="worst"),
    by_host("CPU time", "Means over the time shown.", "sonde_cpu_seconds_total", kind="worst", axis="share"),
))

DASHBOARD = Dashboard(
    "sonde-itself", "Sonde: Sonde itself", "What watching a step costs, and whether all samples are there.",
    "step", (THERE, COST, NODES), (STEP,))
