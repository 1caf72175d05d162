"""What the tests of the built program share: how it is run, what it must say, and a runner that gives each test a folder."""
import os
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOILE = os.path.abspath(os.environ.get("TOILE", os.path.join(ROOT, "build", "toile")))
SHARED = os.environ.get("TOILE_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))


class Skip(Exception):
    pass


def run(*args, environment=None, **more):
    done = subprocess.run([TOILE, *map(str, args)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, **(environment or {})}, **more)
    assert done.returncode >= 0, f"{args}: ended by signal {-done.returncode}\n{done.stderr}"
    return done


def ok(*args):
    done = run(*args)
    assert done.returncode == 0, f"{args}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def fails(code, *args, says=()):
    """The exit code is as told, and an error line names what it should."""
    done = run(*args)
    assert done.returncode == code, f"{args}: exit code {done.returncode} instead of {code}\n{done.stdout}{done.stderr}"
    assert any(line.startswith("toile: ") for line in done.stderr.splitlines()), \
        f"{args}: no line that begins with `toile: `:\n{done.stderr}"
    for word in [says] if isinstance(says, str) else says:
        assert word in done.stderr, f"{args}: does not say {word!r}:\n{done.stderr}"
    return done


def main(tests):
    """Runs functions {name: test(folder)} whose name contains a word of the command line; ends with one line and a code."""
    if not os.access(TOILE, os.X_OK):
        sys.exit(f"there is no program at {TOILE}; build it or set TOILE")
    passed = failed = skipped = 0
    for name, test in tests.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder)
                passed += 1
            except Skip as why:
                skipped += 1
                print(f"SKIPPED {name}: {why}")
            except Exception:
                failed += 1
                print(f"FAILED {name}\n{traceback.format_exc()}")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed or not passed + skipped else 0)


def tests_of(module):
    """Its functions test_NAME, in order."""
    return {name: test for name, test in module.items() if name.startswith("test_") and callable(test)}
