"""Steps that would be silent: run by scenarios.py in the guest."""

import pathlib

from guest_cluster import idle, see


def closed_stderr(cluster):
    """srun gives the number to a pipe of its own; whoever writes there disturbs it for seconds."""

    def run(level):
        words = " ".join(["srun", *level, "-N1", "sleep", "1"])
        times = []
        for stderr in ("2>/dev/null", "2>&-"):
            begin = idle()
            code, output = cluster.run(["bash", "-c", f"{words} {stderr}"])
            times.append(f"{idle() - begin:.1f}")
        return code, output + "seconds " + " ".join(times)

    return see(cluster, run)


def async_step(cluster):
    """srun has gone when Slurm launches it."""

    def run(level):
        words = " ".join(["srun", "--async", "--mpi=none", *level, "-N1", "-n1", "true"])
        return cluster.run(["salloc", "-N1", "bash", "-c", f"{words}; echo rc $?"])

    # A step manager on the node launches it.
    file = pathlib.Path(cluster.dir) / "etc" / "slurm.conf"
    before = file.read_text()
    file.write_text(f"{before}PrologFlags=Contain\nSlurmctldParameters=enable_stepmgr\n")
    cluster.run(["scontrol", "reconfigure"], user=None)
    try:
        return see(cluster, run)
    finally:
        file.write_text(before)
        cluster.run(["scontrol", "reconfigure"], user=None)


SCENARIOS = {"closed_stderr": closed_stderr, "async_step": async_step}
