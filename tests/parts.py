"""A plugin of pytest's that runs a part of what was collected, so that ctest has a long file side by side:

  cd tests && python3 -m pytest -p parts --part 2/3 net/test_fenced.py

Neighbours stay together, for they share what they need.
"""


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="which one of how many parts of the tests to run, as 2/3")


def pytest_collection_modifyitems(config, items):
    number, count = map(int, config.getoption("--part").split("/"))
    begin, end = (len(items) * part // count for part in (number - 1, number))
    config.hook.pytest_deselected(items=items[:begin] + items[end:])
    items[:] = items[begin:end]


# When pytest has put side by side what shares a fixture.
pytest_collection_modifyitems.trylast = True
