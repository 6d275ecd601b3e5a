"""Grafana's dashboards against Grafana's own schema: dashboard_schema_test.py.

The schema is the package grafana-foundation-sdk of PyPI, which Grafana generates from it, in an environment that
scripts/prepare makes; without that the test is skipped (exit status 77).

A dashboard is read into the classes of the schema and written again. What the schema does not know, such as a
misspelled field, is lost on the way; and each field has to be of the type that its class says.
"""

import enum
import json
import os
import pathlib
import sys
import typing
import unittest

SKIPPED = 77

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made  # noqa: E402  (of tests/, for which the path had to be set)
from dashboards import SOURCES, load  # noqa: E402


def be_where_it_is():
    """Goes on in the interpreter that has the package."""
    place = made.place("grafana-schema")
    if place is None:
        print(f"skipped: {made.why('grafana-schema')}")
        sys.exit(SKIPPED)
    if pathlib.Path(sys.prefix).resolve() != place.resolve():
        python = place / "bin" / "python"
        os.execv(python, [python, *sys.argv])


# Where data sources and transformations have fields of their own, for which the schema has a type that holds anything:
# the package writes what it knows and leaves out the rest.
OPEN = {
    # Prometheus' own of an annotation.
    "annotations.list[].titleFormat", "annotations.list[].tagKeys", "annotations.list[].step",
    # Of what an annotation asks.
    "annotations.list[].target.fromAnnotations", "annotations.list[].target.isGlobal",
    "annotations.list[].target.name", "annotations.list[].target.target", "annotations.list[].target.datasource",
    "annotations.list[].target.expr", "annotations.list[].target.interval", "annotations.list[].target.refId",
}  # fmt: skip


def lost(ours, read, where=""):
    """Fields that the schema does not have, or reads as something else."""
    if isinstance(ours, dict) and isinstance(read, dict):
        for key, value in ours.items():
            at = f"{where}.{key}".lstrip(".")
            if at in OPEN:
                continue
            if key not in read:
                yield f"{at} is not in the schema"
            else:
                yield from lost(value, read[key], at)
    elif isinstance(ours, list) and isinstance(read, list) and len(ours) == len(read):
        for one, other in zip(ours, read, strict=True):
            yield from lost(one, other, f"{where}[]")
    elif ours != read:
        yield f"{where} is {ours!r}, and the schema reads {read!r}"


def fits(value, kind):
    """Whether a value is of an annotated type, as deep as its lists and unions go."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object) or isinstance(kind, typing.TypeVar):
        return True
    if origin is typing.Union:
        return any(fits(value, part) for part in parts)
    if origin is typing.Literal:
        return value in parts
    if origin is list:
        return isinstance(value, list) and all(fits(one, parts[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, parts[1]) for one in value.values())
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return value in [one.value for one in kind]
    if isinstance(value, dict) and hasattr(kind, "from_json"):  # the package has left it as it is
        return value.keys() <= kind.from_json(value).to_json().keys()
    return isinstance(value, kind) if isinstance(kind, type) else True


def wrong_types(value, where=""):
    """Fields of the schema's classes that are of another type than these say."""
    if isinstance(value, list):
        for one in value:
            yield from wrong_types(one, f"{where}[]")
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        for name, kind in typing.get_type_hints(type(value)).items():
            field = getattr(value, name, None)
            if field is not None and not fits(field, kind):
                yield f"{where}.{name} is {field!r}, expected {kind}"
            yield from wrong_types(field, f"{where}.{name}")


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.cog.plugins import register_default_plugins
        from grafana_foundation_sdk.models.dashboard import Dashboard

        register_default_plugins()
        cls.read = staticmethod(Dashboard.from_json)
        cls.write = staticmethod(lambda one: json.loads(json.dumps(one, cls=JSONEncoder)))

    def test_dashboards_are_what_the_schema_says(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                with self.subTest(f"{source}/{name}"):
                    read = self.read(json.loads(json.dumps(dashboard)))
                    self.assertEqual(sorted(set(lost(dashboard, self.write(read)))), [])
                    self.assertEqual(sorted(set(wrong_types(read))), [])

    def test_a_misspelled_field_and_a_wrong_type_are_found(self):
        dashboard = load("prometheus")["step"]
        panel = next(one for one in dashboard["panels"] if one["type"] == "timeseries")
        for key, value, found in (("titel", "x", "not in the schema"), ("transparent", "yes", "expected")):
            changed = json.loads(json.dumps(dashboard))
            changed["panels"][dashboard["panels"].index(panel)][key] = value
            read = self.read(json.loads(json.dumps(changed)))
            faults = [*lost(changed, self.write(read)), *wrong_types(read)]
            self.assertEqual(len(faults), 1, faults)
            self.assertIn(found, faults[0])


if __name__ == "__main__":
    be_where_it_is()
    unittest.main(argv=sys.argv[:1])
