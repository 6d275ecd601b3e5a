"""What several tables have: variables, and queries that belong together."""

from generator.model import Query, Variable

ALWAYS = "sonde_samples_total"  # every step has it, at any level
CHARGED = "--telemetry-level=2, a control group with memory, and a Slurm that allocates memory"
STEP = Variable("job", "Step", ALWAYS, "job")
STEPS = Variable("job", "Steps", ALWAYS, "job", many=True)
HOST = Variable("host", "Node", ALWAYS, "host")


def of_nodes(metric, most="most", least=""):
    """Mean and greatest of the nodes, and the least if that is worth a line."""
    found = [Query(metric, "mean", over="mean"), Query(metric, most, over="max")]
    return tuple(found + ([Query(metric, least, over="min")] if least else []))


def of_tasks(metric, **more):
    """Percentiles of the nodes or tasks, of metrics that declare their spread."""
    words = ((5, "5 % have less"), (50, "half have less"), (95, "95 % have less"))
    return tuple(Query(metric, text, percentile=percent, **more) for percent, text in words)


def each(tag, *named):
    """Lines by a tag: (metric, word) each."""
    return tuple(Query(metric, f"{{{tag}}} {word}".strip(), by=(tag,)) for metric, word in named)
