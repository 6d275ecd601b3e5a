"""The RPM packages: what is in them, that it runs, and that rpmlint has no complaint."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
NAMES = ["python3-sonde", "sonde", "sonde-devel", "sonde-fortran-devel", "sonde-grafana", "sonde-libs"]
HEADER = pathlib.Path("/usr/include/slurm/slurm_version.h")
SLURM = int(re.search(r"SLURM_VERSION_NUMBER (0x\w+)", HEADER.read_text()).group(1), 16)
SLURM_RELEASE = f"{SLURM >> 16}.{SLURM >> 8 & 255:02d}"
PLUGIN = f"sonde-slurm{SLURM_RELEASE}"
NAMES += [PLUGIN]
LOCALE = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES")
# Where the packages are compiled.
VERSION = re.search(r"project\(sonde VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
SOURCE = BUILD / "rpm" / "work" / "BUILD" / f"sonde-{VERSION}"


def run(*command, **options):
    return subprocess.run(
        [str(c) for c in command], check=True, capture_output=True, text=True, **options
    ).stdout


def launcher(cache, language):
    """What calls the compiler for the tests, so that its cache is theirs. It keeps apart what was
    compiled in different languages of messages, and rpmbuild chooses one; so it gets the tests'."""
    found = re.search(rf"^CMAKE_{language}_COMPILER_LAUNCHER:\w+=(.*)$", cache, re.MULTILINE)
    if not found:
        return []
    words = ["env"]
    for name in LOCALE:
        words += ["-u", name]
    words += [f"{name}={os.environ[name]}" for name in LOCALE if name in os.environ]
    words += found.group(1).split(";")
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER='{';'.join(words)}'"]


def distribution_has_flags():
    """Whether rpm has more than its own "-O2 -g", which differ from those of a release by the amount of
    debug information alone."""
    return run("rpm", "--eval", "%{optflags}").split() != ["-O2", "-g"]


def as_the_tests_are_built():
    """The environment in which the compiler's cache has it all already. Where the distribution has flags
    of its own, such as those that harden, packages are built with those, and compiled once more."""
    options = ["-DSONDE_WERROR=ON"]
    if not distribution_has_flags():
        cache = (BUILD / "CMakeCache.txt").read_text()
        name = r"^(CMAKE_(?:C|CXX|Fortran)_FLAGS(?:_RELWITHDEBINFO)?):\w+=(.*)$"
        options += [f"-D{key}='{value}'" for key, value in re.findall(name, cache, re.MULTILINE)]
        options += launcher(cache, "C") + launcher(cache, "CXX")
    directory = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    return {**os.environ, **directory, "CMAKE_OPTIONS": " ".join(options)}


@pytest.fixture(scope="module")
def packages():
    """The packages by name, without those of debug information."""
    output = BUILD / "rpm"
    built = subprocess.run(
        [ROOT / "packaging" / "rpm" / "build", output],
        env=as_the_tests_are_built(),
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    found = {}
    for line in built.stdout.splitlines():
        path = pathlib.Path(line)
        if path.name.endswith(".src.rpm") or "-debug" in path.name:
            continue
        found[run("rpm", "-qp", "--queryformat", "%{NAME}", path)] = path
    return found


@pytest.fixture(scope="module")
def installed(packages, tmp_path_factory):
    """The packages' files, unpacked."""
    root = tmp_path_factory.mktemp("root")
    for path in packages.values():
        unpack = f'rpm2cpio "{path}" | cpio --quiet --extract --make-directories'
        subprocess.run(["bash", "-o", "pipefail", "-c", unpack], cwd=root, check=True)
    yield root
    shutil.rmtree(root)


def files(path):
    return run("rpm", "-qlp", path).splitlines()


def query(path, what):
    return run("rpm", "-qp", what, path).splitlines()


def one(root, pattern):
    found = list(root.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def test_every_package_is_built(packages):
    assert sorted(packages) == NAMES


@pytest.fixture
def shared(packages):
    """Only where the compiler's cache is to have compiled the packages' files already."""
    if distribution_has_flags():
        pytest.skip("packages have the distribution's flags")
    if not launcher((BUILD / "CMakeCache.txt").read_text(), "CXX"):
        pytest.skip(f"{BUILD} is built without the compiler's cache")


def compilations(lines, source, build):
    """Object -> (what calls the compiler, the compiler and its arguments), wherever the folders are."""
    found = {}
    for line in lines:
        match = re.search(r"^(?:\[\S+\] )?(.*\bccache) (.* -o (\S+\.o) -c \S+)$", line)
        if match:
            call, arguments, file = match.groups()
            found[file] = (call, arguments.replace(str(build), "@BUILD@").replace(str(source), "@SOURCE@"))
    return found


def both_compilations():
    """Those of the packages, of which rpmbuild leaves the log alone, and those of the tests."""
    log = (BUILD / "rpm" / "work" / "rpmbuild.log").read_text().splitlines()
    ours = run("ninja", "-C", BUILD, "-t", "commands").splitlines()
    return compilations(log, SOURCE, SOURCE / "build" / "rpm"), compilations(ours, ROOT, BUILD)


def test_packages_are_compiled_as_the_tests_are(shared):
    """So nothing is compiled twice; but for what names where things are installed."""
    theirs, ours = both_compilations()
    assert len(theirs) > 100
    differ = {pathlib.Path(file).name for file in theirs if theirs[file][1] != ours.get(file, (0, 0))[1]}
    assert differ == {"install.cc.o", "joiner.cc.o", "plugin_config.cc.o"}


def test_the_compiler_s_cache_serves_the_packages(shared, tmp_path):
    theirs, ours = both_compilations()
    file = "libclient/CMakeFiles/sonde_client_objects.dir/units/sonde_client_objects/libclient.cc.o"
    arguments = ours[file][1].replace("@SOURCE@", str(ROOT)).replace("@BUILD@", str(BUILD))
    # Elsewhere, for ninja would take notice of a new file.
    arguments = arguments.replace(f" {file}", f" {tmp_path}/unit.o")
    told = []
    for call, locale in ((ours[file][0], {}), (theirs[file][0], {"LANG": "of rpmbuild"})):
        log = tmp_path / f"log{len(told)}"
        cache = {"CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_STATSLOG": str(log)}
        run("bash", "-c", f"{call} {arguments}", cwd=BUILD, env={**os.environ, **cache, **locale})
        told.append(log.read_text())
    assert "cache_miss" in told[0] and "direct_cache_hit" in told[1], told


@pytest.mark.parametrize(
    "name, expected",
    [
        ("sonde", "/usr/bin/sonde"),
        ("sonde", "/usr/libexec/sonde/sonded"),
        ("sonde", "/usr/libexec/sonde/sonded-head"),
        ("sonde", "/etc/sonde/sonde.conf"),
        # Enterprise Linux compresses manual pages, Debian's rpmbuild does not.
        ("sonde", r"/usr/share/man/man1/sonde\.1(\.gz)?"),
        ("sonde", r"/usr/share/man/man5/sonde\.conf\.5(\.gz)?"),
        ("sonde", r"/usr/share/man/man8/sonded\.8(\.gz)?"),
        ("sonde", r"/usr/share/licenses/sonde.*/LICENSE"),
        ("sonde", r"/usr/share/doc/sonde/README\.md"),
        ("sonde", r"/usr/share/doc/sonde/docs/admin\.md"),
        ("sonde", r"/usr/share/doc/sonde/examples/mpi_heat\.c"),
        ("sonde", r"/usr/share/doc/sonde/examples/example\.(c|cc|f90|py|sh)"),
        ("sonde-libs", r"/usr/lib.*/libsonde\.so\.1"),
        ("sonde-libs", r"/usr/lib.*/sonde/libsonde-mpi\.so"),
        ("sonde-libs", r"/usr/lib.*/sonde/libsonde-io\.so"),
        ("sonde-libs", r"/usr/lib.*/libsonde_functions\.so\.1"),
        ("sonde-devel", r"/usr/include/sonde\.h"),
        ("sonde-devel", r"/usr/include/sonde\.hpp"),
        ("sonde-devel", r"/usr/lib.*/pkgconfig/sonde\.pc"),
        ("sonde-devel", r"/usr/lib.*/libsonde\.so"),
        ("sonde-devel", r"/usr/lib.*/libsonde_functions\.so"),
        ("sonde-fortran-devel", r"/usr/lib.*/libsonde_fortran\.a"),
        ("sonde-fortran-devel", r"/usr/lib.*/gfortran/modules/sonde\.mod"),
        ("sonde-fortran-devel", r"/usr/lib.*/pkgconfig/sonde-fortran\.pc"),
        ("sonde-fortran-devel", r"/usr/share/sonde/fortran/sonde\.f90"),
        ("python3-sonde", r"/usr/lib.*/sonde/python/sonde/_sonde\.abi3\.so"),
        ("python3-sonde", r"/usr/lib.*/sonde/python/sonde/(_sonde\.pyi|py\.typed)"),
        ("python3-sonde", r"/usr/lib.*/(site|dist)-packages/sonde"),
        (PLUGIN, r"/usr/lib.*/slurm/spank_sonde\.so"),
        (PLUGIN, "/usr/share/sonde/plugstack.conf.example"),
        (PLUGIN, r"/usr/share/man/man8/spank_sonde\.8(\.gz)?"),
        ("sonde-grafana", r"/usr/share/sonde/grafana/dashboards/opentsdb/step\.json"),
        ("sonde-grafana", r"/usr/share/sonde/grafana/dashboards/prometheus/step\.json"),
        ("sonde-grafana", r"/usr/share/sonde/grafana/provisioning/datasources/sonde\.yaml"),
        ("sonde-grafana", r"/usr/share/sonde/grafana/provisioning/dashboards/sonde-prometheus\.yaml"),
    ],
)
def test_a_package_has_its_files(packages, name, expected):
    assert [f for f in files(packages[name]) if re.fullmatch(expected, f)], files(packages[name])


def test_no_file_is_in_two_packages(packages):
    # Folders and licences may be.
    owners = {}
    for name, path in packages.items():
        for line in query(path, "--dump"):
            file, mode = line.split()[0], line.split()[4]
            if mode.startswith("0100") or mode.startswith("0120"):
                owners.setdefault(file, []).append(name)
    assert {f: names for f, names in owners.items() if len(names) > 1} == {}


def test_an_administrator_s_settings_survive_an_update(packages):
    flags = run(
        "rpm", "-qp", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", packages["sonde"]
    )
    # c: configuration, n: noreplace
    assert dict(line.split(" ", 1) for line in flags.splitlines())["/etc/sonde/sonde.conf"] == "cn"


def test_installing_runs_nothing_and_activates_nothing(packages):
    for path in packages.values():
        assert query(path, "--scripts") == []
        assert query(path, "--triggers") == []
        assert [f for f in files(path) if "plugstack.conf" in f and not f.endswith(".example")] == []
        assert [f for f in files(path) if f.startswith(("/usr/lib/systemd", "/etc/init.d"))] == []


def test_nobody_but_root_may_change_the_files_and_none_is_setuid(packages):
    for path in packages.values():
        for line in query(path, "--dump"):
            fields = line.split()
            mode = int(fields[4], 8)
            assert fields[5:7] == ["root", "root"], line
            if (mode & 0o170000) != 0o120000:
                assert mode & 0o6022 == 0, line


def test_the_plugin_is_bound_to_the_release_of_slurm_it_was_built_for(packages):
    requires = "\n".join(query(packages[PLUGIN], "--requires"))
    assert f">= {SLURM_RELEASE}" in requires and f"< {SLURM_RELEASE}.999" in requires
    # Of the builds for several releases that a repository has, the one that fits is installed, alone.
    assert f"sonde-slurm = {VERSION}-" in "\n".join(query(packages[PLUGIN], "--provides"))
    assert query(packages[PLUGIN], "--conflicts") == ["sonde-slurm"]


def test_the_plugin_s_package_alone_is_built_for_another_release(tmp_path):
    """As by a site that has the other packages already, and a machine with little more than Slurm."""
    include = tmp_path / "include"
    shutil.copytree("/usr/include/slurm", include / "slurm")
    header = include / "slurm" / "slurm_version.h"
    text, count = re.subn(r"(?m)^(#define SLURM_VERSION_NUMBER) .*", r"\1 0x1a0505", header.read_text())
    assert count == 1
    header.write_text(text)
    env = as_the_tests_are_built() | {"PLUGIN_ONLY": "1", "SLURM_INCLUDE": str(include)}
    built = run(ROOT / "packaging" / "rpm" / "build", tmp_path / "rpm", env=env).splitlines()
    names = {pathlib.Path(path).name for path in built if "-debug" not in path and ".src." not in path}
    assert [name.partition(f"-{VERSION}-")[0] for name in names] == ["sonde-slurm26.05"]
    (package,) = [path for path in built if "slurm26.05" in path and "-debug" not in path]
    listed = files(package)
    for expected in (r"/usr/lib.*/slurm/spank_sonde\.so", r"/usr/share/man/man8/spank_sonde\.8(\.gz)?",
                     "/usr/share/sonde/plugstack.conf.example"):  # fmt: skip
        assert [file for file in listed if re.fullmatch(expected, file)], listed
    assert "< 26.05.999" in "\n".join(query(package, "--requires"))


def test_the_plugin_exports_only_what_slurm_looks_for(installed):
    plugin = one(installed, "usr/lib*/slurm/spank_sonde.so")
    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
    assert {"plugin_name", "plugin_type", "slurm_spank_init", "slurm_spank_exit"} <= set(symbols)
    known = re.compile(r"^(slurm_spank_\w+|spank_plugin_version|plugin_(name|type|version))$")
    assert [s for s in symbols if not known.match(s)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "usr/lib*/slurm/spank_sonde.so",
        "usr/lib*/libsonde.so.1.*",
        "usr/lib*/sonde/libsonde-mpi.so",
        "usr/lib*/sonde/libsonde-io.so",
        "usr/lib*/libsonde_functions.so.1.*",
    ],
)
def test_what_is_loaded_into_others_needs_the_c_library_only(installed, pattern):
    dynamic = run("readelf", "--dynamic", one(installed, pattern))
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    if "functions" in pattern:
        # Programs may be linked with it, and name it alone.
        assert "libsonde.so.1" in needed
        needed.remove("libsonde.so.1")
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}, needed
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic


def test_the_python_package_is_found_by_its_link_and_by_its_folder(installed):
    link = one(installed, "usr/lib*/python3*/*-packages/sonde")
    assert link.is_symlink() and not os.path.isabs(os.readlink(link))
    extension = one(installed, "usr/lib*/sonde/python/sonde/_sonde.abi3.so")
    dynamic = run("readelf", "--dynamic", extension)
    assert set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) <= {"libsonde.so.1", "libc.so.6"}
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    libraries = {"LD_LIBRARY_PATH": str(one(installed, "usr/lib*/libsonde.so.1").parent)}
    for folder in (link.parent, extension.parent.parent):
        env = {**os.environ, **libraries, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        program = "import sonde; print(sonde.gauge('x').recorded, sonde.__version__)"
        assert run("python3", "-c", program, env=env) == f"False {VERSION}\n"


def test_programs_are_built_by_what_pkg_config_says(installed, tmp_path):
    pkgconfig = one(installed, "usr/lib*/pkgconfig")
    env = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(installed), "PKG_CONFIG_PATH": str(pkgconfig)}
    examples = installed / "usr/share/doc/sonde/examples"
    compilers = {"cc": ("example.c", "sonde"), "c++": ("example.cc", "sonde")}
    compilers["gfortran"] = ("example.f90", "sonde-fortran")
    for compiler, (source, package) in compilers.items():
        flags = run("pkg-config", "--cflags", "--libs", package, env=env).split()
        run(compiler, examples / source, "-o", tmp_path / compiler, *flags, "-lm")
        libraries = {"LD_LIBRARY_PATH": str(pkgconfig.parent)}
        done = run(tmp_path / compiler, "1", env={**os.environ, **libraries})
        assert done.endswith("pi is about 3.141582654\n")


def test_every_nodes_daemon_needs_no_library_of_cxx(installed):
    dynamic = run("readelf", "--dynamic", installed / "usr/libexec/sonde/sonded")
    needed = set(re.findall(r"NEEDED.*\[(lib.*)\.so", dynamic))
    assert needed == {"libc", "libm", "libnettle", "libzstd"}, needed


@pytest.mark.parametrize(
    "program", ["usr/bin/sonde", "usr/libexec/sonde/sonded", "usr/libexec/sonde/sonded-head"]
)
def test_the_programs_run(installed, program):
    assert VERSION in run(installed / program, "--version")


def test_paths_in_the_packages_are_those_of_the_packages(installed):
    example = (installed / "usr/share/sonde/plugstack.conf.example").read_text()
    line = [l for l in example.splitlines() if not l.startswith("#")]
    assert line == [
        "optional spank_sonde.so sonded=/usr/libexec/sonde/sonded config=/etc/sonde/sonde.conf"
    ]
    plugin = one(installed, "usr/lib*/slurm/spank_sonde.so").read_bytes()
    assert b"/usr/libexec/sonde/sonded\0" in plugin
    pc = one(installed, "usr/lib*/pkgconfig/sonde.pc").read_text()
    assert "includedir=/usr/include\n" in pc


def test_nothing_names_the_place_of_the_build(installed):
    place = str(BUILD).encode()
    named = [
        str(path.relative_to(installed))
        for path in installed.rglob("*")
        if path.is_file() and not path.is_symlink() and place in path.read_bytes()
    ]
    assert named == []


@pytest.mark.skipif(not shutil.which("rpmlint"), reason="rpmlint is not installed")
def test_rpmlint_has_no_errors(packages):
    settings = ROOT / "packaging" / "rpm" / "rpmlint.toml"
    result = subprocess.run(
        ["rpmlint", "--config", settings, ROOT / "packaging" / "rpm" / "sonde.spec",
         *packages.values()],
        capture_output=True,
        text=True,
    )  # fmt: skip
    complaints = [l for l in result.stdout.splitlines() if re.search(r": [EW]: ", l)]
    assert complaints == []
