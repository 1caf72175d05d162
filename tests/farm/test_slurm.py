#!/usr/bin/python3
"""Eight wedges through a real Slurm, with a node drained, a task killed and one that runs out of time: all finish, with the bits
of bakes that were never interrupted. Ends with `N passed, M failed`.  TOILE_BUILD names the build folder."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import h5py

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from slurm import Slurm, Unavailable

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOILE = os.path.abspath(os.path.join(os.environ.get("TOILE_BUILD", os.path.join(ROOT, "build")), "toile"))
SCENE = os.path.join(ROOT, "samples/scenes/sphere.json")
SIZE, FRAMES = 37, 40
passed = failed = skipped = 0
began = time.time()


def check(condition, text):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {text}")


def say(text):
    print(f"[{time.time() - began:5.1f} s] {text}", flush=True)


def toile(*arguments, environment=None):
    return subprocess.run([TOILE, *arguments], capture_output=True, text=True, env=environment, timeout=300,
                          check=False)


def hashes(cache):
    with h5py.File(cache, "r") as f:
        return f["frames/state_hash"][:].tolist() if "frames/state_hash" in f else None


class Wedges:
    def __init__(self, folder, slurm):
        self.folder, self.slurm = folder, slurm
        made = toile("wedge", SCENE, "--vary", "fabric=cotton,denim", "--vary", "friction=0.2:0.8:4", "-o", folder,
                     "--set", f"resolution={SIZE}", "--frames", f"1-{FRAMES}")
        check(made.returncode == 0, f"the plan: {made.stderr}")
        with open(folder + "/plan.json", encoding="utf-8") as file:
            self.plan = json.load(file)["wedges"]

    def path(self, index, ending):
        name = self.plan[index]["name"]
        return f"{self.folder}/{name}/{name}{ending}"

    def done(self, index):
        """Finished frames as the cache has them."""
        try:
            with h5py.File(self.path(index, ".h5"), "r", swmr=True, libver="latest") as f:
                return int(f["frames/state_hash"].shape[0])
        except (OSError, KeyError):
            return 0

    def process(self, index):
        """Of the bake, as its lock says."""
        try:
            with open(self.path(index, ".h5.lock"), encoding="utf-8") as file:
                return int(next(line.split()[1] for line in file if line.startswith("pid ")))
        except (OSError, StopIteration):
            return 0

    def wait_for_task(self, node, at_least=4, besides=()):
        """A task that bakes on this node (None: any) and has some frames: (array job, index)."""
        end = time.time() + 60
        while time.time() < end:
            for job, index, state, where, name in self.slurm.tasks():
                if state == "RUNNING" and node in (None, where) and name.endswith("-bake") and int(index) not in besides and \
                        at_least <= self.done(int(index)) < FRAMES - 8 and self.process(int(index)):
                    return job, int(index)
            time.sleep(0.05)
        raise RuntimeError(f"no task runs on {node or 'any node'}:\n{self.slurm.tasks()}\n{self.slurm.logs()}")


def wait_until(condition, seconds, what):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            check(False, f"{what}: not within {seconds} s")
            return False
        time.sleep(0.1)
    return True


def farm_of_eight(slurm, folder):
    wedges = Wedges(folder, slurm)
    sent = toile("submit", folder, "--engine", "slurm", "--export", "abc", "--minutes", "5", "--name", "torture",
                 environment={**slurm.environment, "OMP_WAIT_POLICY": "passive"})
    check(sent.returncode == 0 and "bake" in sent.stdout and "report" in sent.stdout,
          f"submit: {sent.stdout}{sent.stderr}")
    say(sent.stdout.strip())

    # a node is drained, and what ran there goes elsewhere
    job, drained = wedges.wait_for_task("node1")
    slurm.call("scontrol", "update", "nodename=node1", "state=drain", "reason=test")
    moved = slurm.call("scontrol", "requeue", f"{job}_{drained}")
    check(moved.returncode == 0, moved.stderr)
    frames_then = wedges.done(drained)
    say(f"node1 drained, wedge {drained} requeued at frame {frames_then}")

    # a task is killed, in a way that it cannot answer
    job, killed = wedges.wait_for_task("node2", besides=(drained,))
    os.kill(wedges.process(killed), signal.SIGKILL)
    say(f"wedge {killed} killed at frame {wedges.done(killed)}")

    # nothing new starts on a drained node
    check(not [t for t in slurm.tasks() if t[3] == "node1" and t[2] == "RUNNING"],
          "something started on a drained node")
    slurm.call("scontrol", "update", "nodename=node1", "state=resume")

    # the time of a task is over: its script is told as --signal=B:USR1 does (minutes later; scancel --signal tells it again and
    # again); on either node: one whose task was killed may be held for half a minute
    job, late = wedges.wait_for_task(None, besides=(drained, killed))
    with open(f"/proc/{wedges.process(late)}/stat", encoding="ascii") as file:
        script = int(file.read().rsplit(")", 1)[1].split()[1])
    os.kill(script, signal.SIGUSR1)
    say(f"wedge {late} told that its time is over at frame {wedges.done(late)}")

    over = wait_until(lambda: not slurm.tasks(), 150, "the queue is empty")
    say("the queue is empty" if over else f"still there: {slurm.tasks()}")
    if not over:
        print(slurm.logs())
    logs = {}
    for index in range(8):
        with open(f"{folder}/farm/slurm/bake_{index}.log", encoding="utf-8") as file:
            logs[index] = file.read()
        check(wedges.done(index) == FRAMES,
              f"wedge {index} has {wedges.done(index)} of {FRAMES} frames:\n{logs[index][-1500:]}")
        check(os.path.exists(wedges.path(index, ".abc")), f"wedge {index} was not exported")
        check(not os.path.exists(wedges.path(index, ".h5.lock")), f"wedge {index}: the lock is left")
    check(frames_then > 1 and "stopped after frame" in logs[drained],
          f"the drained one did not leave in order:\n{logs[drained]}")
    for index in (drained, killed, late):
        check("(continued)" in logs[index], f"wedge {index} did not go on where it was:\n{logs[index]}")
    check("stopped after frame" in logs[late], f"the late one did not leave in order:\n{logs[late]}")
    shown = slurm.call("scontrol", "show", "job", "-o").stdout
    check(shown.count("JobState=COMPLETED") >= 17, f"not all completed: {shown}")

    table = json.load(open(folder + "/report/table.json", encoding="utf-8"))
    check(len(table) == 8 and all(row["state"] == "complete" for row in table), f"the report: {table}")
    check(os.path.getsize(folder + "/report/contact.png") > 10000, "no contact sheet")
    return wedges


def never_interrupted(wedges, folder):
    """The same bakes by themselves; hashes of every frame."""
    os.makedirs(folder)
    running = []
    for index, wedge in enumerate(wedges.plan):
        sets = [a for s in [f"resolution={SIZE}"] + wedge["set"] for a in ("--set", s)]
        running.append(subprocess.Popen([TOILE, "bake", SCENE, "-o", f"{folder}/{index}.h5", "--frames", f"1-{FRAMES}",
                                         "--threads", "1",
                                         "--progress", "none", *sets]))
        if len(running) == 2:
            running.pop(0).wait()
    for process in running:
        process.wait()
    for index in range(8):
        alone, farmed = hashes(f"{folder}/{index}.h5"), hashes(wedges.path(index, ".h5"))
        check(alone is not None and len(alone) == FRAMES and alone == farmed,
              f"wedge {index}: other bits than a bake by itself")


def main():
    global skipped
    folder = tempfile.mkdtemp(prefix="toile_slurm_")
    os.chmod(folder, 0o755)         # munged insists
    slurm = None
    os.environ.update(OMP_WAIT_POLICY="passive")
    try:
        try:
            slurm = Slurm(folder + "/s")
            slurm.start()
        except (Unavailable, OSError, subprocess.SubprocessError) as reason:
            skipped += 1
            print(f"SKIPPED THE WHOLE TEST OF SLURM, nothing of it was checked: it cannot be started here: {reason}")
            return
        say("Slurm runs: two nodes")
        wedges = farm_of_eight(slurm, folder + "/wedges")
        slurm.stop()
        never_interrupted(wedges, folder + "/alone")
        say("compared with bakes never interrupted")
    except Exception:               # whatever it is, Slurm must be stopped and the line below printed
        check(False, traceback.format_exc())
    finally:
        if slurm is not None:
            slurm.stop()
        if failed == 0:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"kept: {folder}")


if __name__ == "__main__":
    main()
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)
