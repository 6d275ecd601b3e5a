"""Events of tasks, on whatever machine this is: software events everywhere, and of hardware events
those it has, or the reason why not."""

import json
import subprocess

import pytest
from conftest import SONDE, USER
from telemetry import Step, report_of

LEVEL = ("--telemetry-level=3", "--telemetry-period=100ms")

# Touches so many pages for the first time: in itself, in threads, and in children that are waited for.
FAULTS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
enum { kPages = 4000, kParts = 10 };
static void* Touch(void* unused) {
  long page = sysconf(_SC_PAGESIZE);
  char* memory = mmap(NULL, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, kPages * page, MADV_NOHUGEPAGE);
  for (long i = 0; i < kPages; ++i) memory[i * page] = 1;
  munmap(memory, kPages * page);
  return unused;
}
int main(void) {
  Touch(NULL);
  for (int i = 0; i < kParts; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Touch, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
      Touch(NULL);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  struct rusage own, children;
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  printf("%ld\n", own.ru_minflt + children.ru_minflt);
  return 0;
}
"""


@pytest.fixture(scope="module")
def faulting(cluster):
    source = cluster.dir / "faulting.c"
    source.write_text(FAULTS)
    program = cluster.dir / "faulting"
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, source], check=True)
    return program


def total(shown, metric):
    entries = [e for e in shown["profile"]["footprint"] if e["metric"] == metric]
    return sum(entry["last"] for entry in entries)


def test_software_events_are_what_the_program_counts_itself(cluster, faulting):
    step = Step(cluster, ["srun", "-N2", "-n4", *LEVEL, faulting])
    assert step.wait()[0] == 0
    own = sum(int(line) for line in step.stdout.split())
    shown = step.profile()
    assert own > 4 * 21 * 4000
    assert total(shown, "task_perf_page_faults_total") == pytest.approx(own, rel=0.01)
    clock = total(shown, "task_perf_task_clock_seconds_total")
    # What a task takes before its exec is in its CPU time and not in its events.
    before_exec = 4 * 0.05
    assert clock == pytest.approx(shown["summary"]["cpu_seconds"], rel=0.02, abs=before_exec)


def test_the_profile_has_hardware_events_or_the_reason_why_not(cluster, faulting):
    available = {
        event["name"]: event
        for event in json.loads(cluster.run([SONDE, "events", "--json"], user=USER).stdout)["events"]
    }
    assert available["task_clock"]["available"] and "cycles" in available
    step = Step(cluster, ["srun", "-N1", *LEVEL, faulting])
    assert step.wait()[0] == 0
    shown = step.profile()
    if available["cycles"]["available"]:
        assert total(shown, "task_perf_cycles_total") > 0
    else:
        notes = " ".join(shown["profile"]["job"]["notes"])
        assert "cycles" in notes and available["cycles"]["reason"] in notes


def test_a_list_of_events_is_counted_instead_and_a_wrong_name_told(cluster, faulting):
    events = "--telemetry-events=page-faults,no-such-event"
    step = Step(cluster, ["srun", "-N1", *LEVEL, events, faulting])
    assert step.wait()[0] == 0
    shown = step.profile()
    assert total(shown, "task_perf_page_faults_total") == pytest.approx(int(step.stdout), rel=0.01)
    assert total(shown, "task_perf_task_clock_seconds_total") == 0
    assert any("no-such-event is not counted" in note for note in shown["profile"]["job"]["notes"])


def test_what_all_nodes_tell_is_told_once(cluster):
    step = Step(cluster, ["srun", "-N4", *LEVEL, "--telemetry-events=no-such-event", "sleep", "0.3"])
    assert step.wait()[0] == 0
    notes = step.profile()["profile"]["job"]["notes"]
    told = [note for note in notes if "no-such-event" in note]
    assert len(told) == 1 and told[0].startswith("n[1-4]: "), notes
    assert report_of(step.stderr).count("no-such-event") == 1


def pause(cluster, verb, step):
    return cluster.run([SONDE, verb, "counters", step.id], user=USER)


def test_counters_are_paused_and_resumed_on_request(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    done = pause(cluster, "pause", step)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{step.id}: the processors' counters are left to others")
    assert pause(cluster, "resume", step).stdout == f"{step.id}: the processors' counters are counted again\n"
    cluster.run(["scancel", f"{step.job}"], user=USER)
    step.wait()
    notes = step.profile()["profile"]["job"]["notes"]
    asked = [note.split(" at ")[0] for note in notes if "as the user asked" in note]
    assert asked == ["the processors' counters were paused", "the processors' counters were resumed"]
    over = pause(cluster, "pause", step)
    assert over.returncode == 3 and "not running any more" in over.stderr


def test_a_step_that_counts_nothing_has_nothing_to_pause(cluster):
    step = Step(cluster, ["srun", "-N1", "--telemetry-level=2", "sleep", "60"])
    step.live()
    done = pause(cluster, "pause", step)
    assert done.returncode == 1
    assert f"step {step.id} counts no events: it runs at level 2" in done.stderr
    cluster.run(["scancel", f"{step.job}"], user=USER)
    step.wait()


SYSCALLS = r"""
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { kCalls = 200000 };
static void* Call(void* unused) {
  for (int i = 0; i < kCalls; ++i) syscall(SYS_getppid);
  return unused;
}
int main(void) {
  pthread_t thread;
  Call(NULL);
  if (pthread_create(&thread, NULL, Call, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  if (fork() == 0) {
    Call(NULL);
    _exit(0);
  }
  wait(NULL);
  return 0;
}
"""


@pytest.fixture(scope="module")
def calling(cluster):
    source = cluster.dir / "calling.c"
    source.write_text(SYSCALLS)
    program = cluster.dir / "calling"
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, source], check=True)
    return program


def counted_syscalls(cluster, plugstack_argument, program):
    """The count, or None and the notes that say why there is none."""
    with cluster.plugstack_argument(plugstack_argument):
        step = Step(cluster, ["srun", "--telemetry-level=4", "--telemetry-period=100ms",
                              "--telemetry-mpi=no", "--telemetry-io=no", "--telemetry-functions=no",
                              program])
        assert step.wait()[0] == 0
    profile = step.profile()["profile"]
    for entry in profile["footprint"]:
        if entry["metric"] == "task_perf_syscalls_total":
            return entry["last"], profile["job"]["notes"]
    return None, profile["job"]["notes"]


def test_system_calls_are_counted_for_a_step_that_may_slow_down_its_node(cluster, calling):
    count, notes = counted_syscalls(cluster, "machine_counters=always", calling)
    if count is None and any("no tracing" in note for note in notes):
        pytest.skip("the kernel's tracing is not mounted here")
    # The loader's and the library's own are some hundred.
    assert 600_000 <= count <= 601_000


def test_system_calls_are_not_counted_where_others_would_pay(cluster, calling):
    count, notes = counted_syscalls(cluster, "machine_counters=never", calling)
    assert count is None
    assert any("slows down all of a node" in note for note in notes)
