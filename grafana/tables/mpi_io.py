"""Calls of MPI and for files: how long, how often, how large."""

from generator.model import Dashboard, Panel, Query, Row, Variable
from tables.common import STEP, of_tasks

MPI = "--telemetry-mpi, or level 4, and a program with MPI"
MPI_IO = MPI + " that uses MPI-IO"
IO = "--telemetry-io, or level 4"
BY_FUNCTION = "level 4, and a program with MPI"


def by(tag, metric, word="", **where):
    return Query(metric, f"{{{tag}}} {word}".strip(), by=(tag,), where=where)


def sizes(metric, tag, **where):
    """Of a histogram: per tick, so the mean of tasks' medians, and the greatest of the others."""
    return tuple(by(tag, f"{metric}_{part}", word, **where)
                 for part, word in (("p50", "half are smaller"), ("p99", "99 % are smaller"), ("max", "largest")))


SHARE = Row("Time in MPI", (
    Panel("Share of its time that a rank is in MPI", "Since MPI_Init. Ranks far apart wait for each other.",
          of_tasks("mpi_time_ratio"), needs=MPI),
    Panel("Ranks in MPI", "How many ranks are in MPI at a time, by class of call.",
          (by("class", "mpi_seconds_total"),), kind="stack", axis="tasks", needs=MPI),
    Panel("Ranks that wait", "In calls that cannot end before another rank does something.",
          (by("class", "mpi_wait_seconds_total"),), kind="stack", axis="tasks", needs=MPI),
    Panel("Nodes whose ranks are longest in MPI", "The others wait for those that are in MPI least.",
          (Query("mpi_seconds_total", "{host}", by=("host",)),), kind="worst", axis="tasks", needs=MPI),
    Panel("Each rank's share", "By rank.", (by("task", "mpi_time_ratio"),), needs=MPI, only="opentsdb"),
    Panel("Ranks in collective calls", "Those with least of it are waited for. By rank.",
          (by("task", "mpi_seconds_total", **{"class": "collective"}),), axis="share", needs=MPI,
          only="opentsdb"),
))
CALLS = Row("MPI: calls and messages", (
    Panel("Calls", "By class.", (by("class", "mpi_calls_total"),), needs=MPI),
    Panel("Ranks in each function", "How many ranks are in a function at a time.",
          (by("function", "mpi_seconds_total"),), kind="stack", axis="tasks", needs=BY_FUNCTION),
    Panel("Calls of each function", "", (by("function", "mpi_calls_total"),), needs=BY_FUNCTION),
    Panel("Sizes of messages", "What one call was given to send, by class.",
          sizes("mpi_message_bytes", "class"), needs=MPI),
    Panel("Bytes given to send", "By class.", (by("class", "mpi_sent_bytes_total"),), needs=MPI),
    Panel("Bytes received", "By class; of calls that do not wait, what they have room for.",
          (by("class", "mpi_received_bytes_total"),), needs=MPI),
    Panel("MPI-IO", "Bytes.", (Query("mpi_io_read_bytes_total", "read"),
                               Query("mpi_io_written_bytes_total", "written")), needs=MPI_IO),
    Panel("MPI-IO: sizes of writes", "By class.", sizes("mpi_io_write_bytes", "class"), needs=MPI_IO),
))
MOUNT = {"mountpoint": "$mountpoint"}
FILES = Row("I/O", (
    Panel("Tasks in calls for files", "How many are in one at a time, by operation.",
          (by("operation", "io_seconds_total", **MOUNT),), kind="stack", axis="tasks", needs=IO),
    Panel("Calls", "By operation. Many small ones, or much metadata, are slow on parallel filesystems.",
          (by("operation", "io_calls_total", **MOUNT),), needs=IO),
    Panel("Bytes, by filesystem", "",
          (by("mountpoint", "io_read_bytes_total", "read", **MOUNT),
           by("mountpoint", "io_written_bytes_total", "written", **MOUNT)), needs=IO),
    Panel("Tasks in calls, by filesystem", "", (by("mountpoint", "io_seconds_total", **MOUNT),), kind="stack",
          axis="tasks", needs=IO),
    Panel("Sizes of reads and writes", "What one call moved, by operation.",
          sizes("io_size_bytes", "operation", **MOUNT), needs=IO),
    Panel("By interface", "Calls of descriptors (posix) and of streams (stdio).",
          (by("api", "io_calls_total", **MOUNT),), needs=IO),
))
KERNEL = Row("What the kernel and the servers see", (
    Panel("System calls of the tasks", "", (Query("task_read_calls_total", "reads"),
                                            Query("task_write_calls_total", "writes"))),
    Panel("Storage, by the tasks", "What they caused to be read from storage and written to it.",
          (Query("task_read_bytes_total", "read"), Query("task_written_bytes_total", "written"))),
    Panel("Processes that wait for I/O", "Of the tasks: their main thread waits for a disk or a server.",
          (Query("task_processes_blocked", "blocked"),)),
    Panel("NFS", "Bytes from and to the servers, by all programs of the nodes.",
          (Query("node_nfs_server_read_bytes_total", "read"),
           Query("node_nfs_server_written_bytes_total", "written")),
          needs="--telemetry-level=2 and an NFS that is mounted"),
    Panel("Lustre", "Bytes, by all programs of the nodes.",
          (by("fs", "node_lustre_read_bytes_total", "read"), by("fs", "node_lustre_written_bytes_total", "written")),
          needs="--telemetry-level=2 and a Lustre whose statistics may be read"),
    Panel("Disks of the nodes", "Bytes, by all programs of the nodes.",
          (Query("node_disk_read_bytes_total", "read"), Query("node_disk_written_bytes_total", "written"))),
))

DASHBOARD = Dashboard(
    "sonde-mpi-io", "Sonde: MPI and I/O",
    "How long a step's ranks are in MPI and in calls for files, for what they wait, how often and how much.",
    "step", (SHARE, CALLS, FILES, KERNEL),
    (STEP, Variable("mountpoint", "Filesystem", "node_filesystem_avail_bytes", "mountpoint", every=True)))
