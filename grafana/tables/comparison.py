"""Two or more steps beside each other."""

from generator.dashboard import text
from generator.model import Dashboard, Panel, Query, Row
from tables.common import STEPS

ABOUT = Row("About", (
    text("", "Choose the steps above, and a time in which all of them ran. Bars are of that time; lines stand "
         "at the times at which the steps ran. [Sonde's page](${page}/diff?profiles=${job:csv}) lays them over "
         "each other, each from its own beginning or from a phase, and says what differs beyond noise.",
         width=24, height=3),
))


def bar(title, about, metric, calc, **more):
    where = more.pop("where", {})
    over = more.pop("over", "")
    query = Query(metric, "{job}", where=where, over=over)
    return Panel(title, about, (query,), kind="bars", calc=calc, width=8, height=6, **more)


def line(title, about, metric, **more):
    where = more.pop("where", {})
    return Panel(title, about, (Query(metric, "{job}", where=where),), **more)


MPI = "--telemetry-mpi, or level 4, and a program with MPI"
BARS = Row("Each step as one number", (
    bar("Nodes", "The most that reported.", "sonde_memory_bytes", "max", over="count"),
    bar("CPUs in use", "By the tasks, in the mean.", "task_cpu_seconds_total", "mean", axis="CPUs"),
    bar("CPUs in use by the system", "System calls and page faults of the tasks, in the mean.",
        "task_cpu_seconds_total", "mean", axis="CPUs", where={"mode": "system"}),
    bar("Memory of the tasks", "The most at a time.", "task_resident_memory_bytes", "max"),
    bar("Time in MPI", "Of a rank, since MPI_Init, in the mean.", "mpi_time_ratio", "lastNotNull", needs=MPI),
    bar("Ranks that wait for others", "In the mean.", "mpi_wait_seconds_total", "mean", axis="tasks", needs=MPI),
    bar("Network received", "By the nodes, in the mean.", "node_network_receive_bytes_total", "mean"),
    bar("Written to storage", "By the tasks, in the mean.", "task_written_bytes_total", "mean"),
    bar("Read from storage", "By the tasks, in the mean.", "task_read_bytes_total", "mean"),
    bar("GPUs busy", "In the mean.", "gpu_utilization_ratio", "mean",
        needs="--telemetry-level=3 and a node with GPUs"),
    bar("Power of the GPUs", "In the mean.", "gpu_power_watts", "mean",
        needs="--telemetry-level=3 and a node with GPUs"),
    bar("Energy of the step, per second", "Of processors and memory, in the mean.",
        "node_step_energy_joules_total", "mean", needs="--telemetry-level=3 and energy meters that may be read"),
))
LINES = Row("Over time", (
    line("CPUs in use by the tasks", "", "task_cpu_seconds_total", axis="CPUs"),
    line("Memory of the tasks", "", "task_resident_memory_bytes"),
    line("Ranks in MPI", "", "mpi_seconds_total", axis="tasks", needs=MPI),
    line("Tasks in calls for files", "", "io_seconds_total", axis="tasks", needs="--telemetry-io, or level 4"),
    line("Network received", "", "node_network_receive_bytes_total"),
    line("Storage written", "", "task_written_bytes_total"),
))

DASHBOARD = Dashboard(
    "sonde-comparison", "Sonde: steps beside each other", "The main numbers of two or more steps.", "steps",
    (ABOUT, BARS, LINES), (STEPS,), refresh="30s")
