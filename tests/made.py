"""What scripts/prepare has made, for tests: they look, and make nothing themselves."""

import importlib.machinery
import importlib.util
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
loader = importlib.machinery.SourceFileLoader("prepare", str(ROOT / "scripts" / "prepare"))
prepare = importlib.util.module_from_spec(importlib.util.spec_from_loader("prepare", loader))
loader.exec_module(prepare)


def place(name):
    """The folder of an item, or None."""
    return prepare.ITEMS[name].find()


def why(name):
    """Why a test that needs the item is skipped."""
    item = prepare.ITEMS[name]
    file = item.beside("why")
    reason = file.read_text().strip() if file.exists() else "nobody has made it"
    build = f"SONDE_BUILD={os.environ['SONDE_BUILD']} " if "SONDE_BUILD" in os.environ else ""
    return f"{item.what} is not there: {reason}; run {build}scripts/prepare {name}"
