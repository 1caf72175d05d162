#!/usr/bin/python3
"""`toile experiment`: every experiment of the list with --quick leaves a table, numbers and a plot that can be read, and what
the papers claim holds where it holds at small sizes too; a wrong name, a folder that cannot be written and Ctrl-C end well.

    test_experiment.py [NAME...]      TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import csv
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOILE = os.path.abspath(os.environ.get("TOILE", ROOT / "build" / "toile"))
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive"}
PROMISED = """fb_stability aimex_stability projected_damping aimex preconditioners decompose ye_table1 ye_table2 bw_resolution
    bw_bend jiang_rk4""".split()


def run(*args):
    return subprocess.run([TOILE, "experiment", *map(str, args)], capture_output=True, text=True, timeout=600, cwd=ROOT,
                          env=ENVIRONMENT)


def fails(code, *args, says=()):
    done = run(*args)
    assert done.returncode == code, f"{args}: exit code {done.returncode} instead of {code}\n{done.stdout}{done.stderr}"
    assert "toile: " in done.stderr, f"{args}: {done.stderr!r}"
    for word in says:
        assert word in done.stderr, f"{args}: does not say {word!r}:\n{done.stderr}"


def names():
    done = run()
    assert done.returncode == 0, done.stderr
    return re.findall(r"^  (\w+) ", done.stdout, re.M)


# ---- what every experiment leaves ----

def read_csv(path):
    """Rows as dictionaries, numbers as numbers."""
    with open(path, newline="") as file:
        lines = list(csv.reader(file))
    assert len(lines) > 1, f"{path}: no rows"
    assert len(set(lines[0])) == len(lines[0]), f"{path}: a column is there twice: {lines[0]}"
    rows = []
    for line in lines[1:]:
        assert len(line) == len(lines[0]), f"{path}: {len(line)} fields instead of {len(lines[0])}: {line}"
        row = {}
        for key, text in zip(lines[0], line):
            try:
                row[key] = float(text)
            except ValueError:
                row[key] = text
        rows.append(row)
    return rows


def check_plot(path):
    text = path.read_text()
    root = xml.fromstring(text)
    assert root.tag.endswith("svg"), root.tag
    drawn = [e for e in root.iter() if e.tag.endswith("path") or e.tag.endswith("circle")]
    assert len(drawn) > 10, f"{path}: only {len(drawn)} things drawn"
    assert not re.search(r"\b(nan|inf)\b", text), f"{path}: a coordinate is not a number"
    width, height = float(root.get("width")), float(root.get("height"))
    for e in root.iter():
        if e.tag.endswith("circle"):
            assert -5 <= float(e.get("cx")) <= width + 5 and -5 <= float(e.get("cy")) <= height + 5, f"{path}: outside"


def check_table(path, name):
    lines = path.read_text().splitlines()
    assert lines[0] == f"# {name}", lines[0]
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    assert len(rows) > 3 and all(len(row) == 4 for row in rows), f"{path}: {rows}"
    for row in rows[2:]:
        assert row[1].strip() and row[2].strip(), f"{path}: an empty figure: {row}"
    return {row[0].strip(): (row[1].strip(), row[2].strip()) for row in rows[2:]}


# ---- what the papers claim ----

def slope(points):
    """Of log y over log x."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    n, sx, sy = len(logs), sum(x for x, _ in logs), sum(y for _, y in logs)
    return (n * sum(x * y for x, y in logs) - sx * sy) / (n * sum(x * x for x, _ in logs) - sx * sx)


def claims_fb_stability(rows, table):
    assert len(rows) >= 6
    for row in rows:
        assert 0.3 < row["kappa"] < 8, f"the thesis has 0.35 to 2.69: {row}"


def claims_aimex_stability(rows, table):
    assert {row["scheme"] for row in rows} == {"alternating", "sliding"}
    for row in rows:
        assert row["stable"] == 1 and row["energy_growth"] < 0.3, row
        assert row["explicit_share_max"] == 1 and row["implicit_share_max"] == 1 and row["changes"] > 1, f"nothing changed: {row}"
    assert table["wireframes of Figs. 4.8 to 4.10"][1] == "3"


def claims_projected_damping(rows, table):
    last = {}
    for row in rows:
        total = row["kinetic"] + row["gravity"] + row["stretch"] + row["shear"] + row["bend"]
        assert abs(total - row["total"]) < 1e-4 * (1 + abs(total)), row
        if 0.405 < row["time_s"] < 0.505:
            last[row["damping"]] = last.get(row["damping"], 0) - 0.1 * row["total"]
    assert last["all"] > 1.2 * last["none"], f"damping of all motion is to lose more than none: {last}"
    assert last["projected"] < 0.9 * last["all"], f"projected damping is to lose less: {last}"
    wobble = {kind: [row["stretch"] for row in rows if row["damping"] == kind and row["time_s"] > 0.305] for kind in last}
    ups = {kind: sum(abs(a - b) for a, b in zip(w, w[1:])) / sum(w) for kind, w in wobble.items()}
    assert ups["projected"] < 0.5 * ups["none"], f"projected damping is to end the oscillations: {ups}"


def claims_aimex(rows, table):
    for row in rows:
        assert row["sound_ours"] == 1, f"blew up: {row}"
        assert row["difference_ours"] < 2, f"apart by more than the thesis' worst: {row}"
        assert row["iterations_ours"] < 1.5 * row["iterations_implicit"] + 10, row


def claims_preconditioners(rows, table):
    for row in rows:
        if row["scene"] == "corners":
            assert row["block"] == row["constrained"], f"without constraints both are the same: {row}"
        assert row["constrained_equal_error"] < row["none_equal_error"], row
        assert row["constrained"] < row["none"], row


def claims_decompose(rows, table):
    assert {row["scene"] for row in rows} == {"two corners", "sphere", "ground"}
    for row in rows:
        assert row["sound"] == 1, row
        assert row["rows_parts"] < 1.05 * row["rows_whole"], f"parts cost more rows than the whole: {row}"
    assert any(row["rows_parts"] < 0.95 * row["rows_whole"] for row in rows if row["scene"] == "ground")
    parts = [int(n) for n in table["parts in the pictures"][1].split(",")]
    assert len(parts) == 3 and parts[2] > parts[1] > 1, f"the cloth falls apart more and more: {parts}"


def claims_ye_table1(rows, table):
    count = {(row["scene"], row["stretch"], row["solver"]): row["iterations_per_solve"] for row in rows}
    assert len(count) == 12
    for scene in ("pinned", "draping"):
        for k in (60, 600, 6000):
            a, b = count[scene, k, "mpcg"], count[scene, k, "upcg"]
            assert abs(a - b) <= 1 + 0.02 * a, f"{scene}, {k}: {a} and {b} iterations: the paper has the same"
        assert count[scene, 6000, "mpcg"] > count[scene, 60, "mpcg"]


def claims_ye_table2(rows, table):
    count = {(row["matrix"], row["stretch"], row["solver"]): row["iterations"] for row in rows}
    for k in (60, 600, 6000):
        assert count["semi_implicit", k, "corepcg"] <= 8, f"the paper has 2 to 5: {count}"
        assert count["semi_implicit", k, "mpcg_diagonal"] > 5 * count["semi_implicit", k, "corepcg"], count
    assert count["semi_implicit", 6000, "mpcg_diagonal"] > count["semi_implicit", 60, "mpcg_diagonal"]


def claims_bw_resolution(rows, table):
    for solver in ("mpcg", "auto"):
        points = [(row["particles"], row["iterations_per_step"]) for row in rows if row["solver"] == solver]
        assert len(points) == 4 and -0.2 < slope(points) < 0.8, f"{solver}: {points}"


def claims_bw_bend(rows, table):
    assert sorted({row["bend_factor"] for row in rows}) == [0.1, 1, 10, 100, 1000] and len(rows) == 10
    for solver in ("mpcg", "auto"): # 10,000 times stiffer bends do not ask for shorter steps
        steps = {row["bend_factor"]: row["steps"] / row["frames"] for row in rows if row["solver"] == solver}
        assert steps[1000] <= 1.2 * steps[0.1], f"{solver}: {steps}"


def claims_jiang_rk4(rows, table):
    sheets = [row for row in rows if row["case"] == "sheet" and row["integrator"] == "rk4"]
    for n in {row["particles"] for row in sheets}:
        steps = [(row["stiffness"], row["step_s"]) for row in sheets if row["particles"] == n]
        assert len(steps) == 4 and -0.6 < slope(steps) < -0.35, f"the step is to shrink as the root of stiffness: {steps}"
    systems = {(row["case"], row["integrator"]): row["steps_per_frame"] for row in rows if row["case"] != "sheet"}
    for k in range(1, 6):
        explicit, implicit = systems[f"jiang_{k}", "rk4"], systems[f"jiang_{k}", "backward_euler"]
        assert explicit > 10 * implicit, f"test system {k}: {explicit} steps against {implicit}"


# ---- tests ----

def test_list():
    listed = names()
    assert len(set(listed)) == len(listed)
    missing = set(PROMISED) - set(listed)
    assert not missing, f"not listed: {missing}"
    assert run("list").stdout == run().stdout


def test_refused():
    with tempfile.TemporaryDirectory() as folder:
        fails(2, "fb_stabilty", "-o", folder, says=["fb_stabilty", "fb_stability"])
        fails(2, "fb_stability", says=["-o"])
        fails(2, "fb_stability", "-o", folder, "--threads", "0", says=["--threads"])
        fails(2, "fb_stability", "-o", folder, "--quik", says=["--quik"])
        file = pathlib.Path(folder) / "file"
        file.write_text("")
        fails(5, "fb_stability", "-o", file, says=["file", "-o"])
        fails(5, "fb_stability", "-o", pathlib.Path(folder) / "no" / "such", says=["such", "-o"])
        fails(5, "fb_stability", "-o", "/proc/self", "--quick", says=["/proc/self", "-o"])
        fails(5, "bw_bend", "-o", folder, "--quick", "--samples", folder, says=["cylinder.json", "--samples"])
        if os.geteuid() != 0:
            os.chmod(folder, 0o500)
            fails(5, "fb_stability", "-o", folder, says=[folder])
            os.chmod(folder, 0o700)


def test_stop():
    """Ctrl-C keeps what is done."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([TOILE, "experiment", "fb_stability", "-o", folder], cwd=ROOT, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        rows = pathlib.Path(folder) / "fb_stability.csv"
        end = time.monotonic() + 300
        while not (rows.exists() and rows.read_text().count("\n") >= 3) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 75, f"exit code {process.returncode}: {said}"
        assert "stopped" in said, said
        assert 2 <= len(read_csv(rows)) < 500
        check_plot(rows.with_suffix(".svg"))
        check_table(rows.with_suffix(".md"), "fb_stability")
        assert "Stopped before the end" in rows.with_suffix(".md").read_text()


def make_test(name):
    def test():
        with tempfile.TemporaryDirectory() as folder:
            done = run(name, "-o", folder, "--quick")
            assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"
            assert "LEFT OUT" not in done.stderr, done.stderr
            at = pathlib.Path(folder)
            rows = read_csv(at / f"{name}.csv")
            assert (at / f"{name}.svg").exists()
            for picture in at.glob("*.svg"):
                check_plot(picture)
            table = check_table(at / f"{name}.md", name)
            if name in PROMISED:
                globals()[f"claims_{name}"](rows, table)
    return test


def main():
    tests = {"list": test_list, "refused": test_refused, "stop": test_stop, **{name: make_test(name) for name in names()}}
    passed = failed = 0
    for name, test in tests.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        try:
            test()
            passed += 1
        except Exception:
            failed += 1
            print(f"FAILED: {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
