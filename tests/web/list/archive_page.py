"""A browser on a server with an archive of made steps, and its API, for the tests of lists and comparisons.

Words of the command line: SERVER [--shots DIR].
"""

import json
import pathlib
import re
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from page import Page  # noqa: E402

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60,
         "h": 3600}
# Controls without a name that a screen reader could say.
NAMELESS = """
return [...document.querySelectorAll('a[href], button, input, select, summary')]
    .filter((one) => one.checkVisibility() && !(one.getAttribute('aria-label') ||
        one.textContent.trim() && one.tagName !== 'SELECT' || (one.labels && one.labels.length)))
    .map((one) => one.outerHTML.slice(0, 120));"""
SIZES = {"phone": (360, 740), "laptop": (1280, 800), "wall": (2560, 1440)}


def amount(text):
    """12 min 5 s, 3.4 GiB, 47 %: as a number."""
    if text.endswith("%"):
        return float(text[:-1].strip())
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) ([^\d\s]+)", text))


class ArchivePage(Page):
    COUNT = 0  # of steps, as the server is told

    @classmethod
    def setUpClass(cls):
        cls.archive = tempfile.TemporaryDirectory(prefix="sonde-archive-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.archive.cleanup)
        cls.ARGUMENTS = [cls.archive.name, str(cls.COUNT)]
        super().setUpClass()
        cls.origin, _, cls.token = cls.address.partition("/#token=")

    def api(self, path, *pairs):
        request = urllib.request.Request(f"{self.origin}{path}?{urllib.parse.urlencode(pairs)}",
                                         headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def refused_by_api(self, path, *pairs):
        """The status and the words."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.api(path, *pairs)
        with caught.exception as error:
            return error.code, json.load(error)["error"]["message"]

    def steps(self, **parameters):
        """The answer of /api/v1/steps; a parameter that is a list is given several times."""
        return self.api("/api/v1/steps", *((name, one) for name, value in parameters.items()
                                           for one in (value if isinstance(value, list) else [value])))

    def open(self, hash, selector):
        self.go(hash)
        self.wait_for(selector)

    def shots(self, name, ready):
        for size, (width, height) in SIZES.items():
            for dark in (False, True):
                self.look(width, dark, height)
                self.wait_for(ready)
                self.wait_to_fit(width)
                self.shot(f"{name}-{size}-{'dark' if dark else 'light'}")
