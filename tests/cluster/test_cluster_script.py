"""scripts/cluster itself: what every other test on a cluster relies on."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest
from conftest import OTHER_USER, ROOT, SCRIPT, SLURM, USER, wait_for


@pytest.fixture(scope="module")
def cluster(make_cluster):
    """Without Sonde's plugin: these tests are about the cluster alone."""
    return make_cluster(plugstack="")


def processes_naming(directory):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if entry.name.isdigit() and str(directory).encode() in text:
            found.append(int(entry.name))
    return sorted(set(found) - {os.getpid()})


def test_step_runs_on_all_nodes_as_the_user(cluster):
    done = cluster.run(["srun", "-N4", "bash", "-c", "echo $SLURMD_NODENAME $(id -un) $HOME"])
    assert done.returncode == 0, done.stderr
    home = cluster.home(USER)
    assert sorted(done.stdout.splitlines()) == [f"n{i} {USER} {home}" for i in (1, 2, 3, 4)]


def test_every_part_of_slurm_is_of_the_release_asked_for(cluster):
    """With SONDE_SLURM: no daemon has a library of this machine's, and srun in a job is the same one."""
    if not SLURM:
        pytest.skip("the clusters have this machine's own Slurm")
    place = pathlib.Path(subprocess.check_output([ROOT / "scripts" / "slurm", "--made", SLURM], text=True).strip())
    done = cluster.run(["srun", "-N1", "bash", "-c", "readlink -f $(command -v srun); exec cat /proc/self/maps"])
    assert done.stdout.splitlines()[0] == str(place / "bin" / "srun"), done.stderr
    # A job's own program is this machine's.
    assert "/sonde/roots/" not in done.stdout.split("\n", 1)[1]
    step = cluster.popen(["srun", "-N1", "bash", "-c", "echo $PPID; exec sleep 1000"])
    slurmstepd = int(step.stdout.readline())
    listing = subprocess.check_output([SCRIPT, "ps", cluster.dir], text=True)
    daemons = [int(line.split()[1]) for line in listing.splitlines() if not line.startswith("supervisor")]
    for pid in [*daemons, slurmstepd]:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line}
        # But for those that this machine's nsswitch.conf names.
        foreign = [path for path in mapped if not path.startswith(f"{place.parent}/") and "/libnss_" not in path]
        assert mapped and not foreign, foreign
    cluster.cancel_all()


def test_exit_code_input_and_output_pass_through(cluster):
    done = cluster.run("cat; echo error >&2; exit 42", input="some input")
    assert (done.returncode, done.stdout, done.stderr) == (42, "some input", "error\n")


def test_run_becomes_the_command(cluster):
    child = cluster.popen("echo $$; exec sleep 1000")
    assert int(child.stdout.readline()) == child.pid
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=5) == -signal.SIGTERM


def test_options_of_the_command_stay_with_it(cluster):
    done = subprocess.run(
        [SCRIPT, "run", cluster.dir, "--user", USER, "srun", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("slurm")


def test_users_cannot_read_the_key_nor_each_other(cluster):
    assert cluster.run(["ls", cluster.dir / "munge"]).returncode != 0
    assert cluster.run(["ls", cluster.dir / "state"]).returncode != 0
    assert cluster.run(["ls", cluster.home(USER)], user=OTHER_USER).returncode != 0
    assert cluster.run(["ls", cluster.home(USER)], user=USER).returncode == 0


def test_sbatch_runs_and_its_end_is_known(cluster):
    job = cluster.sbatch("srun -N2 true; exit 3", options=["-N2", "--output=out.%j"])
    assert cluster.wait_job(job) == "FAILED"
    assert (cluster.home() / f"out.{job}").exists()


def test_mpi_programs_start_under_pmi2(cluster, tmp_path):
    source, program = tmp_path / "sum.c", cluster.home() / "sum"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int main(int c, char **v) { int r, s; MPI_Init(&c, &v);"
        " MPI_Comm_rank(MPI_COMM_WORLD, &r);"
        " MPI_Reduce(&r, &s, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);"
        ' if (!r) printf("%d\\n", s); return MPI_Finalize(); }\n'
    )
    subprocess.run(["mpicc.mpich", "-o", program, source], check=True)
    done = cluster.run(["srun", "--mpi=pmi2", "-N4", "-n8", program])
    assert (done.returncode, done.stdout) == (0, "28\n"), done.stderr


def test_two_clusters_live_side_by_side(cluster, make_cluster):
    other = make_cluster(plugstack="", nodes=2)
    assert other.run(["srun", "-N2", "true"]).returncode == 0
    assert cluster.run(["srun", "-N4", "true"]).returncode == 0
    assert not set(other.jobs()) & set(cluster.jobs())
    other.stop()
    assert not other.dir.exists()
    assert cluster.run(["srun", "-N4", "id", "-un"]).stdout.split() == [USER] * 4


def test_clusters_can_start_at_the_same_time():
    starts = [
        subprocess.Popen([SCRIPT, "start", "--nodes", "1"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    directories = [start.communicate(timeout=60)[0].strip() for start in starts]
    try:
        assert len(set(directories)) == 3
        for directory in directories:
            command = [SCRIPT, "run", directory, "--user", OTHER_USER, "srun", "hostname"]
            subprocess.run(command, check=True, timeout=30)
    finally:
        for directory in filter(None, directories):
            subprocess.run([SCRIPT, "stop", directory], check=True)
    assert not any(processes_naming(directory) for directory in directories)


def test_nothing_is_left_after_stop(make_cluster):
    cluster = make_cluster(plugstack="", nodes=2)
    # One leaves its session, its parent and its environment behind; the other was never in a job.
    escape = "env -i /usr/bin/setsid --fork bash -c 'echo $$; exec sleep 1000 >&- 2>&-'; sleep 1000"
    step = cluster.popen(["srun", "-N1", "bash", "-c", escape])
    escaped = int(step.stdout.readline())
    stray = cluster.popen("setsid sleep 1000 & exec sleep 1000")
    cluster.stop()
    assert not cluster.dir.exists()
    assert processes_naming(cluster.dir) == []
    assert not os.path.exists(f"/proc/{escaped}/exe")
    assert step.returncode != 0 and stray.returncode != 0
    cluster.stop()  # A second stop finds nothing to do and says nothing.


def test_stop_works_without_the_supervisor(make_cluster):
    cluster = make_cluster(plugstack="", nodes=2)
    step = cluster.popen(["srun", "-N2", "sleep", "1000"])
    cluster.wait_for(lambda: "RUNNING" in cluster.jobs().values(), "the job to run")
    listing = subprocess.check_output([SCRIPT, "ps", cluster.dir], text=True)
    daemons = dict(line.split() for line in listing.splitlines())
    os.kill(int(daemons["supervisor"]), signal.SIGKILL)
    subprocess.run([SCRIPT, "stop", cluster.dir], check=True)
    assert step.wait(timeout=10) != 0
    assert processes_naming(cluster.dir) == []


def test_the_cluster_ends_with_its_owner():
    with subprocess.Popen(["sleep", "1000"]) as owner:
        start = [SCRIPT, "start", "--nodes", "1", "--owner", str(owner.pid)]
        done = subprocess.run(start, capture_output=True, text=True, check=True)
        directory = pathlib.Path(done.stdout.strip())
        owner.kill()
    wait_for(lambda: not processes_naming(directory), "the cluster to stop by itself", 20)
    assert not directory.exists()


def test_users_go_with_the_last_cluster(tmp_path):
    """On a copy of /etc and an empty /run, so that this host's other clusters do not count. In a container somebody
    else has the number of such a user."""
    number = 50500 + os.getpid() % 4000 * 2
    script = f"""
        set -e
        mkdir etc && cp -a /etc/. etc && mount --bind etc /etc && mount -t tmpfs tmpfs /run
        # The users' numbers must not be those of other clusters' users, nor of this test's running
        # beside itself: stop ends what they run.
        sed -i 's/^UID_MIN.*/UID_MIN {number}/; s/^GID_MIN.*/GID_MIN {number}/' /etc/login.defs
        sed -i '/^sonde-test/d' /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/subuid
        cp /etc/passwd before
        first=$({SCRIPT} start --nodes 1)
        second=$({SCRIPT} start --nodes 1)
        {SCRIPT} run $second --user {USER} sh -c 'setsid sleep 1000 &'
        mkdir other && mount -n -t tmpfs tmpfs other && mkdir other/usr && mount -n --bind /usr other/usr
        ln -s usr/bin usr/lib usr/lib64 other
        unshare --pid --fork --root=other \
            setpriv --reuid $(id -u {USER}) --clear-groups sleep 1000 >/dev/null 2>&1 &
        container=$!
        trap 'kill -KILL $(ps --ppid $container -o pid=)' EXIT
        {SCRIPT} stop $first
        echo $(id -un {USER} {OTHER_USER})
        {SCRIPT} stop $second
        cmp before /etc/passwd
        ls -A /run
        ps --ppid $container -o comm=
    """
    command = ["unshare", "--mount", "bash", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{USER} {OTHER_USER}\nsleep\n"), done.stderr


def test_failed_start_says_why_and_leaves_nothing():
    directory = tempfile.mkdtemp(prefix="sonde-failed.", dir="/tmp")
    start = [SCRIPT, "start", "--dir", directory, "--slurm-conf-extra", "Nonsense=1"]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert "Nonsense" in done.stderr
    assert not os.path.exists(directory)
    assert processes_naming(directory) == []


def test_stop_leaves_other_directories_alone(tmp_path):
    (tmp_path / "precious").touch()
    done = subprocess.run([SCRIPT, "stop", tmp_path], capture_output=True, check=False)
    assert done.returncode == 1
    assert (tmp_path / "precious").exists()


def test_a_killed_slurmd_leaves_the_step_and_can_be_started_again(make_cluster):
    cluster = make_cluster(plugstack="", nodes=2)
    step = cluster.popen("srun -N2 bash -c 'echo up; read line; echo $line'", stdin=subprocess.PIPE)
    assert [step.stdout.readline(), step.stdout.readline()] == ["up\n", "up\n"]
    cluster.node("n2", "kill")
    step.stdin.write("done\ndone\n")
    step.stdin.close()
    assert step.stdout.read().split().count("done") >= 1
    cluster.node("n2", "start")
    done = cluster.run(["srun", "-N2", "true"])
    assert done.returncode == 0, done.stderr


def test_a_crashed_node_takes_its_tasks_with_it(make_cluster):
    cluster = make_cluster(plugstack="", nodes=2)
    step = cluster.popen(["srun", "--no-kill", "-N2", "bash", "-c", "echo up $$; exec sleep 1000"])
    pids = [int(step.stdout.readline().split()[1]) for _ in range(2)]
    cluster.node("n2", "crash")
    # A zombie has no executable any more.
    alive = [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]
    assert len(alive) == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v"]))
