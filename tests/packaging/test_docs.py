"""What is written about options, keys and arguments is what the programs know."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
MAN = ROOT / "packaging" / "man"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def plain(page):
    """A manual page's text without roff: fonts, escapes, arguments in quotes."""
    lines = []
    for line in (MAN / f"{page}.in").read_text(encoding="utf-8").splitlines():
        # In .BR a "b" c the arguments are set without a blank between them.
        fonts = re.match(r"^\.(?:B|I|BR|BI|IR|RB)\s+(.*)", line)
        if fonts:
            parts = re.findall(r'"([^"]*)"|((?:\\.|[^\s"])+)', fonts.group(1))
            line = "".join(quoted or bare for quoted, bare in parts)
        lines.append(line)
    text = "\n".join(lines)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\c\n", "")


def keys_of_code():
    table = read("core/config.cc").split("Keys() {", 1)[1].split("return keys;", 1)[0]
    rules = read("core/text/site_rules.cc").split("kSiteKeys[] = {", 1)[1].split("};", 1)[0]
    daemons = read("core/text/daemon_settings.cc").split("kDaemonKeys[] = {", 1)[1].split("};", 1)[0]
    return [
        *re.findall(r'^ {6}\{"([a-z_]+)",', table, re.MULTILINE), *re.findall(r'"(\w+)"', rules),
        *re.findall(r'^ {4}\{"([a-z_]+)",', daemons, re.MULTILINE),
    ]  # fmt: skip


def defaults_of_conf():
    return dict(re.findall(r"^#([a-z_]+) =(?: (.*))?$", read("packaging/sonde.conf"), re.MULTILINE))


def test_sonde_conf_shows_every_key_once_and_sets_none():
    text = read("packaging/sonde.conf")
    shown = re.findall(r"^#([a-z_]+) =", text, re.MULTILINE)
    assert shown == keys_of_code()
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == []


def test_the_manual_page_of_sonde_conf_has_every_key_with_its_default():
    text = read("packaging/man/sonde.conf.5.in")
    described = dict(re.findall(r'^\.BR ([a-z_]+) " =(?: (.+))?"$', text, re.MULTILINE))
    assert described == defaults_of_conf()


def test_the_manual_page_of_the_plugin_has_its_options_and_arguments():
    text = plain("spank_sonde.8")
    options = re.findall(r'\{"(telemetry-[a-z]+)"', read("spank/plugin_options.cc"))
    variables = re.findall(r'"(SLURM_TELEMETRY_[A-Z]+)"', read("spank/plugin_options.cc"))
    arguments = re.findall(r'name == "([a-z]+)"', read("spank/plugin_config.cc"))
    assert len(options) == 9 and len(variables) == 8 and set(arguments)
    assert re.findall(r"^--(telemetry-[a-z]+)=", text, re.MULTILINE) == options
    assert [v for v in variables if v not in text] == []
    assert set(re.findall(r"^([a-z]+)=", text, re.MULTILINE)) == set(arguments)


def test_the_manual_page_of_the_daemon_has_its_options():
    text = plain("sonded.8")
    options = re.findall(r'== "(--[a-z-]+)"', read("daemon/node/main.cc"))
    assert options and [o for o in options if o not in text] == []


def help_of(*command):
    return subprocess.run(
        [BUILD / "cli" / "sonde", *command, "--help"], check=True, capture_output=True, text=True
    ).stdout


def options_of(text):
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text)) - {"--help", "-h"}


def subcommands_of(text):
    _, _, listed = text.partition("Subcommands:")
    return re.findall(r"^  ([a-z]+) +\S", listed, re.MULTILINE)


def options_of_command(*command):
    """Its own and those of its subcommands."""
    text = help_of(*command)
    return options_of(text).union(*(options_of_command(*command, s) for s in subcommands_of(text)))


@pytest.mark.skipif(not (BUILD / "cli" / "sonde").exists(), reason="the command is not built")
def test_the_manual_page_of_the_command_has_every_subcommand_and_option():
    general = help_of()
    subcommands = subcommands_of(general)
    assert subcommands
    text = plain("sonde.1")
    described = dict(re.findall(r"^\.SS sonde ([a-z]+).*?\n(.*?)(?=^\.S[SH])", text, re.M | re.S))
    assert list(described) == subcommands
    assert options_of(general.split("Subcommands:")[0]) <= options_of(text.split(".SH SUBCOMMANDS")[0])
    for name in subcommands:
        assert options_of_command(name) == options_of(described[name]), name


@pytest.mark.parametrize("page", sorted(p.name for p in MAN.iterdir()))
def test_manual_pages_have_no_faults_of_form(page):
    text = re.sub(r"@\w+@", "X", (MAN / page).read_text(encoding="utf-8"))
    result = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8"], input=text, capture_output=True, text=True
    )
    assert result.stderr == "" and result.returncode == 0


def test_the_spec_and_cmake_agree_on_the_version():
    cmake = re.search(r"project\(sonde VERSION (\S+)", read("CMakeLists.txt")).group(1)
    spec = re.search(r"^Version: +(\S+)", read("packaging/rpm/sonde.spec"), re.MULTILINE).group(1)
    assert spec == cmake


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *sorted(
    str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page))
    missing = [t for t in targets if not ((ROOT / page).parent / t).exists()]
    assert missing == []


def texts_of_programs():
    """All string literals of the programs, neighbours joined, what is filled in written as ...."""
    rooms = ["core", "launcher", "series", "libclient", "profiles", "insight", "forward", "web", "daemon"]
    rooms += ["serve", "spank", "cli"]
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for room in rooms
        for path in sorted((ROOT / room).rglob("*"))
        if path.suffix in (".cc", ".h")
    )
    source = re.sub(r'"\s*\n\s*"', "", source)
    return re.sub(r"\{[^{}\s\"]*\}|%[a-z]", "...", source)


def quoted_messages(page):
    """The messages in tables of troubleshooting, in pieces between what differs."""
    for line in read(page).split("stands for what differs", 1)[1].splitlines():
        cell = line.split("|")[1].strip() if line.startswith("| ") else ""
        # What the user sees of other programs is named with them.
        if cell.startswith(("srun:", "Slurm:")) or "SLURM_" in cell:
            continue
        for message in re.findall(r"`([^`]{20,})`", cell):
            yield from (piece for piece in message.split("...") if len(piece.strip()) > 3)


@pytest.mark.parametrize("page", ["docs/user.md", "docs/admin.md"])
def test_messages_are_quoted_as_the_programs_print_them(page):
    texts = texts_of_programs()
    # errno's texts are the C library's.
    system = [": No such file or directory", ": Permission denied"]
    pieces = [piece for piece in quoted_messages(page) if piece not in system]
    missing = [piece for piece in pieces if piece.strip(": ;") not in texts]
    assert pieces
    assert not missing, "\n".join(missing)


def rooms_of_design():
    """The rows of the table of folders in docs/design.md: {folder: all that its row names}."""
    section = read("docs/design.md").split("## Rooms", 1)[1].split("\n### ", 1)[0]
    rows = {}
    for line in section.splitlines():
        cells = line.split("|")
        if len(cells) < 4:
            continue
        for folder in re.findall(r"`([a-z_/]+)/`", cells[1]):
            rows[folder] = re.findall(r"`([a-z_/]+)/`", line)
    return rows


def test_design_names_every_folder_of_the_floors():
    floors = re.findall(r'^    "([a-z_/]+)": \[', read("scripts/floors"), re.MULTILINE)
    folders = [folder for folder in floors if (ROOT / folder).is_dir()]
    assert len(folders) > 50
    rows = rooms_of_design()

    def is_named(folder):
        return folder in rows or any(
            folder == name or folder == f"{room}/{name}" or f"{room.split('/')[0]}/{name}" == folder
            for room, names in rows.items()
            for name in names
            if folder.startswith(room.split("/")[0] + "/")
        )

    assert [folder for folder in folders if not is_named(folder)] == []
    assert [folder for folder in rows if not (ROOT / folder).is_dir()] == []


def test_what_newcomers_ask_leads_to_files_that_exist():
    table = read("docs/design.md").split("### Where is it?", 1)[1].split("\n## ", 1)[0]
    answers = [line.split("|")[2] for line in table.splitlines() if line.startswith("| W")]
    assert len(answers) >= 10
    for answer in answers:
        paths = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.[a-z]+)?)`", answer)
        assert paths, answer
        assert [path for path in paths if not (ROOT / path).exists()] == []


def in_words(expression):
    """A constant's value as docs write it: 3 * kSecond is "3 s", 8u << 20 "8 MiB"."""
    unit = {"kSecond": 1000, "kMillisecond": 1}
    if match := re.fullmatch(r"(?:(\d+) \* )?(kSecond|kMillisecond)", expression):
        millis = int(match[1] or 1) * unit[match[2]]
        return {f"{millis} ms"} | ({f"{millis // 1000} s"} if millis % 1000 == 0 else set())
    if match := re.fullmatch(r"(\d+)u? << 20", expression):
        return {f"{match[1]} MiB"}
    if match := re.fullmatch(r"(\d+) \* kMicrosecond", expression):
        return {f"{int(match[1]) / 1000:g} ms"}
    return {expression, f"{expression} bytes"}


def test_limits_of_the_transport_are_those_of_the_code():
    table = read("docs/transport.md").split("## Limits", 1)[1]
    rows = re.findall(
        r"^\| (.+) \| (.+) \| `(.+)` (k\w+) \| (?:`(.+)`|none) \|$", table, re.MULTILINE
    )
    assert len(rows) > 25
    for _, value, header, constant, test in rows:
        found = re.search(rf"constexpr \w+ {constant} = (.+?);", read(header))
        assert found, f"{header} has no {constant}"
        assert value in in_words(found[1]), f"{constant} is {found[1]}, not {value}"
        assert (ROOT / test).exists(), test  # the root itself where there is none


def names_of_unit_tests():
    """SUITE.NAME of every test of GoogleTest."""
    for path in (ROOT / "tests" / "unit").glob("*_test.cc"):
        text = path.read_text(encoding="utf-8")
        yield from (f"{suite}.{name}" for suite, name in re.findall(
            r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE))


def unknown_tests(cell):
    """Of the tests that a cell of a table names, at least one, those that do not exist: SUITE.NAME, or a
    file and the names of some of its tests."""
    known, path, unknown = set(names_of_unit_tests()), None, []
    words = re.findall(r"`(tests/[\w/]+\.py|test_\w+|\w+\.[A-Z]\w+)`", cell)
    for word in words:
        if word.startswith("tests/"):
            path = word
        elif word.startswith("test_"):
            unknown += [] if path and f"def {word}(" in read(path) else [word]
        elif word not in known:
            unknown.append(word)
    return unknown if words and not words[-1].endswith(".py") else [cell]


def test_every_fault_of_the_archive_has_a_test_that_exists():
    table = read("docs/archive.md").split("## What can go wrong", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for fault, *said, named in rows:
        assert len(said) == 2 and all(said), fault
        assert unknown_tests(named) == [], fault


def test_what_is_said_of_other_systems_has_a_test_that_exists():
    rows = [line for line in read("docs/coming-from.md").splitlines() if line.startswith("| ")]
    rows = [line for line in rows if not line.startswith("| feature |")]
    assert len(rows) >= 10
    for row in rows:
        feature, *said, named = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(said) == 3 and any(said), feature
        assert unknown_tests(named) == [], feature
