#!/usr/bin/python3
"""How much faster two slots bake a wedge of eight than one, one thread per bake: figures of the machine, not a test.

    measure_slots.py [--together] [PAIRS]      --together: both at the same time, for a machine that others use too"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOILE = os.path.abspath(os.path.join(os.environ.get("TOILE_BUILD", os.path.join(ROOT, "build")), "toile"))
FOLDER = tempfile.mkdtemp(prefix="toile_slots_")


def bake(slots, results):
    """Seconds until the last of the bakes is done; the report after them is left out."""
    folder = os.path.join(FOLDER, f"slots_{slots}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([TOILE, "wedge", os.path.join(ROOT, "samples/scenes/sphere.json"), "--vary", "fabric=cotton,denim",
                    "--vary",
                    "friction=0.2:0.8:4", "-o", folder, "--set", "resolution=41", "--frames", "1-40"], check=True,
                   stdout=subprocess.DEVNULL)
    began = time.monotonic()
    queue = subprocess.Popen([TOILE, "submit", folder, "--engine", "local", "--slots", str(slots), "--progress",
                              "json"],
                             stdout=subprocess.PIPE, text=True)
    for line in queue.stdout:
        if '"complete"' in line:
            results[slots] = time.monotonic() - began
    queue.wait()


def main():
    together = "--together" in sys.argv
    pairs = next((int(a) for a in sys.argv[1:] if a.isdigit()), 3)
    ratios = []
    for _ in range(pairs):
        results = {}
        threads = [threading.Thread(target=bake, args=(slots, results)) for slots in (1, 2)]
        for thread in threads:
            thread.start()
            if not together:
                thread.join()
        for thread in threads:
            thread.join()
        ratios.append(results[2] / results[1])
        print(f"one slot {results[1]:.1f} s, two {results[2]:.1f} s, ratio {ratios[-1]:.2f}", flush=True)
    shutil.rmtree(FOLDER)
    print(f"median {sorted(ratios)[len(ratios) // 2]:.2f}")


main()
