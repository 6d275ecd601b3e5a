"""A private Slurm cluster for benchmarks, and the lines they print."""

import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "cluster"
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release")).resolve()
PLUGIN = BUILD / "spank" / "spank_sonde.so"
SONDED = BUILD / "daemon" / "sonded"


def figure(name, value, unit, digits=3):
    print(f"figure {name} {value:.{digits}f} {unit}", flush=True)


def latencies(bench, labels, lines):
    """Figures of the lines "NAME MICROSECONDS"; `labels` has the words for each name."""
    times = {name: [] for name in labels}
    for line in lines:
        name, spent = line.split()
        times[name].append(float(spent) / 1000)
    for name, values in times.items():
        hundredths = statistics.quantiles(values, n=100)
        figure(f"{bench}.{name}_p50", hundredths[49], "ms")
        figure(f"{bench}.{name}_p99", hundredths[98], "ms")
        print(f"  {labels[name]}, {len(values)} rounds, at best {min(values):.3f} ms")


@contextlib.contextmanager
def cluster(plugstack, conf="", nodes=4):
    """Yields the cluster's directory; its sonde.conf holds `conf`."""
    with tempfile.NamedTemporaryFile("w", suffix=".plugstack") as file:
        file.write(plugstack)
        file.flush()
        command = [SCRIPT, "start", "--nodes", str(nodes), "--plugstack", file.name]
        command += ["--owner", str(os.getpid())]
        started = subprocess.run(command, check=True, capture_output=True, text=True)
    directory = pathlib.Path(started.stdout.strip())
    (directory / "sonde.conf").write_text(conf)
    try:
        yield directory
    finally:
        subprocess.run([SCRIPT, "stop", directory], check=True)


def our_plugstack(sonded=SONDED):
    return f"optional {PLUGIN} sonded={sonded} config=@DIR@/sonde.conf libraries={BUILD / 'libclient'}\n"


def environment(directory):
    """What srun needs to work on that cluster, as root."""
    home = directory / "home" / "root"
    home.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SONDE_"))}
    return {**env, "SLURM_CONF": str(directory / "etc" / "slurm.conf"), "HOME": str(home)}
