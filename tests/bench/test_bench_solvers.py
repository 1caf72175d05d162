#!/usr/bin/env python3
"""`toile bench solvers` itself, by its quickest keys: JSON of the promised shape, ratios that are plausible, and missing
things named. The figures proper are the benchmark's business, on a quiet machine.

Ends with a line `N passed, M failed`; the program is $TOILE, build/toile if that is not set.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOILE = os.environ.get("TOILE", str(ROOT / "build" / "toile"))
passed = failed = 0


def check(ok, text):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print("FAILED:", text)


def bench(*arguments):
    done = subprocess.run([TOILE, "bench", "solvers", "--json", *arguments], capture_output=True, text=True, cwd=ROOT)
    check(done.returncode == 0, f"{arguments}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout) if done.returncode == 0 else {"missing": [], "cases": []}, done.stderr


def main():
    result, _ = bench("--only", "decompose_over_full")
    ratio = result.get("decompose_over_full_rowmultiplies_sphere_stick")
    check(ratio is not None and 0.2 < ratio < 1, f"sticking cloth: {ratio} of the rows are multiplied")
    check(result["missing"] == [], f"missing: {result['missing']}")

    result, _ = bench("--only", "iterations_constrained")
    ratio = result.get("iterations_constrained_over_none_sphere")
    check(ratio is not None and 0.2 < ratio < 0.9, f"the constrained preconditioner takes {ratio} of the iterations")

    # what is not there is said aloud and has no figure
    result, said = bench("--only", "bullet", "--bullet-source", "no/such/file.cpp")
    check(result["missing"] == ["bullet_6561_sphere"], f"missing: {result['missing']}")
    check("bullet_6561_sphere" not in result and "NOT COMPARED WITH BULLET" in said, f"said: {said}")
    result, said = bench("--only", "two_corners_6561", "--blender-script", "no/such/file.py")
    check(result["missing"] == ["two_corners_6561_over_blender"], f"missing: {result['missing']}")
    check("NOT COMPARED WITH BLENDER" in said, f"said: {said}")

    result, _ = bench("--only", "no such key")
    check(sorted(result) == ["cases", "missing"] and not result["cases"], f"{sorted(result)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
