"""sonde model and sonde predict: of steps that Slurm ran, and for a job in its queue."""

import json

from conftest import SONDE, USER

SLEEP = "sleep $(echo \"$SLURM_NTASKS\" | awk '{ print $1 / 4 }')"


def sonde(cluster, *arguments):
    done = cluster.run([SONDE, *arguments, "--json"], user=USER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_queued_job_is_predicted_from_the_steps_with_its_name(cluster):
    for tasks in range(4, 9):
        options = ["--telemetry-level=1", "-J", "grows", "-N4", "-n", tasks]
        done = cluster.run(["srun", *options, "sh", "-c", SLEEP], user=USER)
        assert done.returncode == 0, done.stderr
    answer = sonde(cluster, "model", "grows", "--metric", "duration")
    # All have as many nodes.
    assert answer["parameters"] == ["tasks"]
    assert sorted(run["place"]["tasks"] for run in answer["runs"]) == [4, 5, 6, 7, 8]
    job = cluster.sbatch("srun true", options=["-J", "grows", "-N4", "-n8", "-t5", "--hold"])
    predicted = sonde(cluster, "predict", job)
    assert predicted["of"] == f"job {job} (grows)"
    assert (predicted["place"], predicted["beyond"]) == ({"tasks": 8}, 1)
    assert (predicted["time_limit"], predicted["time_limit_is"]) == (300, "enough")
    assert predicted["predictions"][0]["value"] >= 1
    cluster.slurm("scancel", job)
    unknown = cluster.run([SONDE, "predict", "999999"], user=USER)
    assert unknown.returncode == 3 and "scontrol knows no job 999999" in unknown.stderr
