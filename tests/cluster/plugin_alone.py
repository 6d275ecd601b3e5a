"""A cluster with the plugin and standin.py in the daemon's place, and what the stand-in recorded.

A test module imports the fixtures: `from plugin_alone import cluster, daemon`.
"""

import json
import shutil

import pytest
from conftest import PLUGIN, ROOT, wait_for

PLUGSTACK = f"optional {PLUGIN} sonded=@DIR@/standin/sonded config=@DIR@/sonde.conf state=@DIR@/counters\n"


class Record:
    """What one stand-in saw: launch message, itself, tasks, their ends."""

    def __init__(self, path):
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]

    def all(self, kind):
        return [line for line in self.lines if line["kind"] == kind]

    def has(self, kind):
        return bool(self.all(kind))

    @property
    def launch(self):
        return self.all("launch")[0]

    @property
    def itself(self):
        return self.all("self")[0]


class Daemon:
    """The stand-in of a cluster."""

    def __init__(self, cluster):
        self.path = cluster.dir / "standin" / "sonded"
        self.records_dir = self.path.parent / "records"
        self.records_dir.mkdir(parents=True)
        self.records_dir.chmod(0o1777)
        self.install()

    def install(self):
        shutil.copy(ROOT / "tests" / "cluster" / "standin.py", self.path)
        self.path.chmod(0o755)

    def forget(self):
        for path in self.records_dir.iterdir():
            path.unlink()

    def records(self, role="", step=""):
        """The records of ROLE, or all, of step JOB.STEP, in the order of the nodes' names."""
        found = [Record(path) for path in sorted(self.records_dir.iterdir())]
        return [
            record
            for record in found
            if record.has("launch")
            and record.launch["role"].startswith(role)
            and f"{record.launch['job']}.{record.launch['step']}".startswith(step)
        ]

    def wait_records(self, count, role="", step="", kind="self"):
        """Waits for `count` records that hold `kind`."""

        def there():
            found = [record for record in self.records(role, step) if record.has(kind)]
            return found if len(found) >= count else None

        return wait_for(there, f"{count} records of {role or 'any role'} with {kind}")


@pytest.fixture(scope="module")
def cluster(make_cluster):
    assert PLUGIN.exists(), f"not built: {PLUGIN}"
    return make_cluster(plugstack=PLUGSTACK)


@pytest.fixture(scope="module")
def _daemon(cluster):
    return Daemon(cluster)


@pytest.fixture
def daemon(cluster, _daemon):
    """The stand-in, as new and without records, and no sonde.conf."""
    _daemon.install()
    _daemon.forget()
    cluster.conf("")
    return _daemon
