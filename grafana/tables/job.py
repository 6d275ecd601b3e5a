"""The overview of a step: read in a minute."""

from generator.dashboard import text
from generator.model import Dashboard, Panel, Query, Row
from tables.common import CHARGED, STEP, of_nodes, of_tasks

MPI = "--telemetry-mpi, or level 4, and a program with MPI"
GPU = "--telemetry-level=3 and a node with GPUs"

WHO = Row("Who and what", (
    text("", "## Step $job\n\n[Its page in Sonde](${page}/#/job/$job) says who ran it and what, with the "
         "report, phases, alarms and hints."),
    Panel("Nodes", "Nodes whose daemons report.", (Query("sonde_memory_bytes", over="count"),),
          kind="stat", width=3, height=5),
    Panel("Processes", "Processes of the step's tasks.", (Query("task_processes"),),
          kind="stat", width=3, height=5),
    Panel("Threads", "Threads of the step's tasks.", (Query("task_threads"),),
          kind="stat", width=3, height=5),
    Panel("CPUs", "Hardware threads that the step may run on.", (Query("cgroup_cpuset_cpus"),),
          kind="stat", needs="--telemetry-level=2 and a control group with cpuset", width=3, height=5),
    Panel("Killed for want of memory", "Processes that the kernel has killed.",
          (Query("cgroup_oom_kills_total", total=True),), kind="stat", calc="max", thresholds=((1, "bad"),),
          needs="--telemetry-level=2 and a control group with memory", width=4, height=5),
    Panel("Processors", "Which processors the nodes have, and how many nodes have them.",
          (Query("node_processor_info", "{model}", by=("model",)),), kind="stat", width=12, height=4),
    Panel("Slingshot links", "1 where all are up, 0 where one is down.",
          (Query("node_slingshot_up"),), kind="stat", needs="--telemetry-level=2 and Slingshot",
          width=6, height=4),
    Panel("Held back by the CPU limit", "CPUs' worth of time in which tasks had to wait.",
          (Query("cgroup_cpu_throttled_seconds_total"),), kind="stat", axis="CPUs", calc="max",
          needs="--telemetry-level=2 and a limit of CPU time", width=6, height=4),
))
CPU = Row("CPU", (
    Panel("CPU time of the tasks", "How many CPUs the step's tasks keep busy, by mode.",
          (Query("task_cpu_seconds_total", "{mode}", by=("mode",)),), kind="stack", axis="CPUs"),
    Panel("CPU time of the nodes", "What all CPUs of the step's nodes do, whoever uses them.",
          (Query("node_cpu_seconds_total", "{mode}", by=("mode",)),), kind="stack", axis="CPUs"),
    Panel("Load of the nodes", "Threads that run or are ready to.",
          of_nodes("node_load1", least="least")),
    Panel("Nodes wait for a CPU", "Share of the time in which something was ready to run and did not.",
          of_nodes("node_pressure_cpu_waiting_seconds_total"), axis="share",
          needs="--telemetry-level=2 and a kernel with pressure information"),
))
MEMORY = Row("Memory", (
    Panel("Memory of the tasks", "What all tasks hold together.",
          (Query("task_resident_memory_bytes", "all tasks"),), width=8),
    Panel("Memory of a task", "Whether tasks hold as much as each other.",
          of_tasks("task_resident_memory_bytes"), width=8),
    Panel("Charged and allocated", "What the step's control groups are charged with, file cache included, and "
          "what Slurm has allocated.",
          (Query("cgroup_memory_bytes", "charged"), Query("node_memory_allocated_bytes", "allocated")),
          needs=CHARGED, width=8),
    Panel("Memory that is left on a node", "On the node with least, and in the mean.",
          (Query("node_memory_MemAvailable_bytes", "least"),
           Query("node_memory_MemAvailable_bytes", "mean", over="mean"))),
    Panel("Nodes wait for memory", "Share of the time in which something waited for memory.",
          of_nodes("node_pressure_memory_waiting_seconds_total"), axis="share",
          needs="--telemetry-level=2 and a kernel with pressure information"),
))
MOVED = Row("Network and I/O", (
    Panel("Network", "All interfaces of all nodes; the loopback interface at level 4 alone.",
          (Query("node_network_receive_bytes_total", "received"),
           Query("node_network_transmit_bytes_total", "sent"))),
    Panel("InfiniBand", "All ports of all nodes.",
          (Query("node_infiniband_port_data_received_bytes_total", "received"),
           Query("node_infiniband_port_data_transmitted_bytes_total", "sent")),
          needs="--telemetry-level=2 and InfiniBand"),
    Panel("Slingshot", "All links of all nodes.",
          (Query("node_slingshot_receive_bytes_total", "received"),
           Query("node_slingshot_transmit_bytes_total", "sent")),
          needs="--telemetry-level=2 and Slingshot"),
    Panel("Storage, by the tasks", "What the tasks caused to be read from storage and written to it.",
          (Query("task_read_bytes_total", "read"), Query("task_written_bytes_total", "written"))),
    Panel("Files, by the tasks", "What system calls of the tasks read and wrote: files, pipes, caches.",
          (Query("task_read_call_bytes_total", "read"), Query("task_write_call_bytes_total", "written"))),
    Panel("Nodes wait for I/O", "Share of the time in which something waited for I/O.",
          of_nodes("node_pressure_io_waiting_seconds_total"), axis="share",
          needs="--telemetry-level=2 and a kernel with pressure information"),
))
GPUS = Row("GPUs", (
    Panel("Busy", "Whether all of the step's GPUs have work.", of_tasks("gpu_utilization_ratio"),
          needs=GPU, width=8),
    Panel("Memory", "In use, and what there is, of all GPUs of the step.",
          (Query("gpu_memory_used_bytes", "used"), Query("gpu_memory_total_bytes", "there is")),
          needs=GPU, width=8),
    Panel("Power", "Of all GPUs of the step.", (Query("gpu_power_watts", "drawn"),), needs=GPU, width=8),
))
MPIS = Row("MPI", (
    Panel("Share of its time that a rank is in MPI", "Since MPI_Init. Ranks far apart wait for each other.",
          of_tasks("mpi_time_ratio"), needs=MPI),
    Panel("Ranks in MPI", "How many ranks are in MPI at a time, by class of call.",
          (Query("mpi_seconds_total", "{class}", by=("class",)),), kind="stack", axis="tasks", needs=MPI),
))


def worst(title, about, metric, **more):
    query = Query(metric, "{host}", by=("host",), where=more.pop("where", {}))
    return Panel(title, about, (query,), kind="worst", width=6, height=9, **more)


WORST = Row("Nodes to look at", (
    worst("Least memory left", "Means over the time shown. A click leads to the node.",
          "node_memory_MemAvailable_bytes", least=True),
    worst("Highest load", "Means over the time shown.", "node_load1"),
    worst("Fewest busy CPUs", "A node with less to do than the others waits for them, or they for it.",
          "node_cpu_seconds_total", where={"mode": "!idle|iowait"}, axis="CPUs", least=True),
    worst("Most memory of tasks", "Means over the time shown.", "task_resident_memory_bytes"),
))

DASHBOARD = Dashboard(
    "sonde-step", "Sonde: a job step",
    "Who, what, and how a step fares: CPU, memory, network, I/O, GPUs, MPI and the nodes to look at.",
    "step", (WHO, CPU, MEMORY, MOVED, GPUS, MPIS, WORST), (STEP,))

