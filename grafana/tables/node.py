"""All of one node of a step."""

from generator.model import Dashboard, Panel, Query, Row, Variable
from tables.common import CHARGED, HOST, STEP, each

CPU = Row("CPU", (
    Panel("CPU time by mode", "What the node's CPUs do.",
          (Query("node_cpu_seconds_total", "{mode}", by=("mode",)),), kind="stack", axis="CPUs"),
    Panel("CPU time of the tasks", "What the step's tasks have of it.",
          (Query("task_cpu_seconds_total", "{mode}", by=("mode",)),), kind="stack", axis="CPUs"),
    Panel("CPU time of each task", "By rank.", (Query("task_cpu_seconds_total", "{task}", by=("task",)),),
          axis="CPUs", only="opentsdb"),
    Panel("Each core", "Busy, by hardware thread.",
          (Query("node_cpu_core_seconds_total", "{cpu}", by=("cpu",), where={"mode": "!idle|iowait"}),),
          axis="share"),
    Panel("Load and what runs", "The load is a mean over a minute.",
          (Query("node_load1", "load"), Query("node_procs_running", "running or ready"),
           Query("node_procs_blocked", "waiting for I/O"))),
    Panel("Something waits", "Share of the time in which something on the node waited for this.",
          (Query("node_pressure_cpu_waiting_seconds_total", "CPU"),
           Query("node_pressure_io_waiting_seconds_total", "I/O"),
           Query("node_pressure_memory_waiting_seconds_total", "memory")), axis="share",
          needs="--telemetry-level=2 and a kernel with pressure information"),
    Panel("Scheduler and interrupts", "Sudden changes tell of other programs on the node.",
          (Query("node_context_switches_total", "context switches"), Query("node_intr_total", "interrupts"),
           Query("node_forks_total", "new processes and threads"))),
    Panel("Frequency", "The clock of the node's CPUs.",
          (Query("node_cpu_frequency_mean_hertz", "mean"),
           Query("node_cpu_frequency_lowest_hertz", "slowest"),
           Query("node_cpu_frequency_highest_hertz", "fastest")),
          needs="--telemetry-level=4 and a kernel that tells frequencies"),
))
MEMORY = Row("Memory", (
    Panel("Memory of the node", "What there is and what is left.",
          (Query("node_memory_MemTotal_bytes", "there is"),
           Query("node_memory_MemAvailable_bytes", "available"), Query("node_memory_MemFree_bytes", "free"))),
    Panel("What memory is used for", "By the whole node.",
          (Query("node_memory_AnonPages_bytes", "programs"), Query("node_memory_Cached_bytes", "files"),
           Query("node_memory_Shmem_bytes", "shared memory and tmpfs"),
           Query("node_memory_Slab_bytes", "kernel")), kind="lines"),
    Panel("Memory of the tasks", "What the node's tasks hold together.",
          (Query("task_resident_memory_bytes", "all tasks"),)),
    Panel("Charged and allocated", "What the step's control group is charged with, and what Slurm has allocated.",
          (Query("cgroup_memory_bytes", "charged"), Query("cgroup_memory_file_bytes", "of it file cache"),
           Query("node_memory_allocated_bytes", "allocated")), needs=CHARGED),
    Panel("Memory of each task", "By rank.",
          (Query("task_resident_memory_bytes", "{task}", by=("task",)),), only="opentsdb"),
    Panel("Limit of memory", "Where processes are killed if nothing can be reclaimed.",
          (Query("cgroup_memory_limit_bytes", "limit"),),
          needs="--telemetry-level=2 and a limit of the control group", width=6),
    Panel("Processes killed", "For want of memory, so far.",
          (Query("cgroup_oom_kills_total", "killed", total=True),), thresholds=((1, "bad"),),
          needs="--telemetry-level=2 and a control group with memory", width=6),
    Panel("Swap", "What goes to swap and comes back.",
          (Query("node_vmstat_pswpin_bytes_total", "in"), Query("node_vmstat_pswpout_bytes_total", "out")),
          width=6),
    Panel("Page faults", "Of the tasks: those that needed I/O stall them.",
          (Query("task_major_faults_total", "with I/O"), Query("task_minor_faults_total", "without")), width=6),
))
NETWORK = Row("Network", (
    Panel("Bytes", "By interface.",
          each("device", ("node_network_receive_bytes_total", "in"), ("node_network_transmit_bytes_total", "out"))),
    Panel("Errors and drops", "By interface: none is normal.",
          each("device", ("node_network_receive_errs_total", "errors in"),
               ("node_network_transmit_errs_total", "errors out"),
               ("node_network_receive_drop_total", "dropped in"),
               ("node_network_transmit_drop_total", "dropped out"))),
    Panel("TCP segments sent again", "The network loses packets or is overloaded.",
          (Query("node_netstat_Tcp_RetransSegs_total", "sent again"),)),
    Panel("Packets", "By interface.",
          each("device", ("node_network_receive_packets_total", "in"),
               ("node_network_transmit_packets_total", "out"))),
    Panel("InfiniBand", "By adapter.",
          each("device", ("node_infiniband_port_data_received_bytes_total", "in"),
               ("node_infiniband_port_data_transmitted_bytes_total", "out")),
          needs="--telemetry-level=2 and InfiniBand"),
    Panel("InfiniBand errors", "By adapter: a cable, a plug or congestion.",
          each("device", ("node_infiniband_symbol_error_total", "symbol errors"),
               ("node_infiniband_port_errors_received_total", "bad packets"),
               ("node_infiniband_port_discards_transmitted_total", "not sent")),
          needs="--telemetry-level=2 and InfiniBand"),
    Panel("Slingshot", "By link.",
          each("device", ("node_slingshot_receive_bytes_total", "in"),
               ("node_slingshot_transmit_bytes_total", "out")), needs="--telemetry-level=2 and Slingshot"),
    Panel("Slingshot paused", "Congestion, added up over 8 traffic classes.",
          each("device", ("node_slingshot_receive_paused_seconds_total", "in"),
               ("node_slingshot_transmit_paused_seconds_total", "out")), axis="share",
          needs="--telemetry-level=2 and Slingshot"),
))


def disk(*named):
    return tuple(Query(metric, f"{{device}} {word}".strip(), by=("device",), where={"device": "$disk"})
                 for metric, word in named)


NFS = "--telemetry-level=2 and an NFS that is mounted"
LUSTRE = "--telemetry-level=2 and a Lustre whose statistics may be read"
STORAGE = Row("Disks and filesystems", (
    Panel("Disks: bytes", "By disk.",
          disk(("node_disk_read_bytes_total", "read"), ("node_disk_written_bytes_total", "written"))),
    Panel("Disks: requests", "By disk.",
          disk(("node_disk_reads_completed_total", "reads"), ("node_disk_writes_completed_total", "writes"))),
    Panel("Disks: busy", "Share of the time in which a request was under way.",
          disk(("node_disk_io_time_seconds_total", "")), axis="share"),
    Panel("Room", "That users can still fill.",
          (Query("node_filesystem_avail_bytes", "{mountpoint}", by=("mountpoint",)),)),
    Panel("Inodes left", "Files and directories that can still be made.",
          (Query("node_filesystem_files_free", "{mountpoint}", by=("mountpoint",)),)),
    Panel("NFS: bytes", "From and to the servers.",
          (Query("node_nfs_server_read_bytes_total", "read"),
           Query("node_nfs_server_written_bytes_total", "written")), needs=NFS),
    Panel("NFS: calls under way", "Calls times their duration, by operation.",
          (Query("node_nfs_operation_seconds_total", "{operation}", by=("operation",)),), axis="requests",
          needs=NFS),
    Panel("NFS: calls sent again", "The server did not answer.",
          (Query("node_nfs_rpc_retransmissions_total", "sent again"),), needs=NFS),
    Panel("Lustre: bytes", "By filesystem.",
          each("fs", ("node_lustre_read_bytes_total", "read"), ("node_lustre_written_bytes_total", "written")),
          needs=LUSTRE),
    Panel("Lustre: opened, closed, asked for", "By filesystem.",
          each("fs", ("node_lustre_opens_total", "opened"), ("node_lustre_closes_total", "closed"),
               ("node_lustre_getattrs_total", "attributes")), needs=LUSTRE),
))


def gpu(metric, word="", *tags):
    shown = " ".join(["{gpu}", *(f"{{{tag}}}" for tag in tags), word]).strip()
    return Query(metric, shown, by=("gpu", *tags))


HAS_GPUS = "--telemetry-level=3 and a node with GPUs"
GPUS = Row("GPUs", (
    Panel("Busy", "By GPU.", (gpu("gpu_utilization_ratio"),), needs=HAS_GPUS),
    Panel("Memory in use", "By GPU.", (gpu("gpu_memory_used_bytes"),), needs=HAS_GPUS),
    Panel("Power", "By GPU.", (gpu("gpu_power_watts"),), needs=HAS_GPUS),
    Panel("Temperature", "By GPU and sensor.", (gpu("gpu_temperature_celsius", "", "sensor"),), needs=HAS_GPUS),
    Panel("Clock", "By GPU.", (gpu("gpu_clock_hertz", "", "clock"),), needs=HAS_GPUS),
    Panel("Clock held down", "1 while it is, by GPU and reason.", (gpu("gpu_throttled", "", "reason"),),
          needs=HAS_GPUS),
    Panel("PCIe", "By GPU.", (gpu("gpu_pcie_received_bytes_total", "in"),
                              gpu("gpu_pcie_transmitted_bytes_total", "out")), needs=HAS_GPUS),
    Panel("Links to other GPUs", "By GPU.", (gpu("gpu_link_received_bytes_total", "in"),
                                             gpu("gpu_link_transmitted_bytes_total", "out")), needs=HAS_GPUS),
    Panel("Memory errors", "By GPU and type.", (gpu("gpu_ecc_errors_total", "", "type"),), needs=HAS_GPUS),
    Panel("Errors of the driver", "XIDs, by GPU.", (gpu("gpu_xid_errors_total"),),
          needs="--telemetry-level=3 and NVIDIA's driver"),
))
HARDWARE = Row("Processor events, energy, temperature", (
    Panel("Instructions per cycle", "Mean of the node's tasks.", (Query("task_instructions_per_cycle", "mean"),),
          needs="--telemetry-level=3 and a machine that counts cycles"),
    Panel("FLOP/s", "Of the node's tasks together.", (Query("task_flops_per_second", "all tasks"),),
          needs="--telemetry-level=3 and a processor that counts them"),
    Panel("Memory traffic", "Of the node's tasks together.", (Query("task_memory_bytes_per_second", "all tasks"),),
          needs="--telemetry-level=3 and a processor that tells it"),
    Panel("Power by domain", "From energy meters: domains contain one another.",
          (Query("node_energy_joules_total", "{domain} ({source})", by=("domain", "source")),),
          needs="--telemetry-level=3 and energy meters that may be read"),
    Panel("Temperature", "Highest of a processor's package.",
          (Query("node_package_temperature_celsius", "{chip}", by=("chip",)),),
          needs="--telemetry-level=2 and sensors"),
    Panel("Slowed down for the temperature", "Cores and packages.",
          (Query("node_cpu_core_throttles_total", "cores"), Query("node_cpu_package_throttles_total", "packages")),
          needs="--telemetry-level=2 and processors that tell it"),
))

DASHBOARD = Dashboard(
    "sonde-node", "Sonde: a node of a step", "Everything that was measured on one node of a step.", "node",
    (CPU, MEMORY, NETWORK, STORAGE, GPUS, HARDWARE),
    (STEP, HOST, Variable("disk", "Disk", "node_disk_read_bytes_total", "device", every=True)))
