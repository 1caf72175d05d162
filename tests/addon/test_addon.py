#!/usr/bin/python3
"""The add-on in real Blender: installed from its zip, headless, on a machine without its libraries, in a window.

    test_addon.py [NAME...]      TOILE_BUILD names the build folder (build)

Pictures are kept in BUILD/tests/addon. Ends with `N passed, M failed`."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("TOILE_BUILD", os.path.join(ROOT, "build")))
ZIP = os.path.join(BUILD, "toile-addon.zip")
SHARED = os.path.abspath(os.environ.get("TOILE_SHARED", os.path.join(os.path.dirname(ROOT), "shared")))
KEPT = os.path.join(BUILD, "tests", "addon")
passed = failed = skipped = 0

# The C library, which is part of the system.
SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl)\.so\.\d+)$")


def check(condition, text):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {sys._getframe(1).f_code.co_name}: {text}")


def skip(text):
    global skipped
    skipped += 1
    print(f"SKIPPED {text}")


def blender(script, *arguments, factory=True, window=False, user=None, timeout=900, environment=None, addon_log=True):
    """Runs a script in Blender with user folders of its own; adds up its closing line; gives its output."""
    global passed, failed
    user = user or tempfile.mkdtemp(prefix="toile_user_")
    env = {**os.environ, "HOME": user, "BLENDER_USER_SCRIPTS": user + "/scripts", "BLENDER_USER_CONFIG": user + "/config",
           "OMP_WAIT_POLICY": "passive", "TOILE_SHARED": SHARED, **(environment or {})}
    os.makedirs(user + "/scripts/addons", exist_ok=True)
    os.makedirs(user + "/config", exist_ok=True)
    command = ["blender"] + ([] if window else ["-b"]) + (["--factory-startup"] if factory else [])
    if window:
        command += ["--no-window-focus", "-p", "0", "0", "1600", "1000"]
        env.update(LIBGL_ALWAYS_SOFTWARE="1", LP_NUM_THREADS="1")   # threads of the software driver wait for each other
    command += ["--python-exit-code", "1", "--python", os.path.join(HERE, script), "--", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, check=False)
    log = done.stdout + done.stderr
    os.makedirs(KEPT, exist_ok=True)
    with open(os.path.join(KEPT, os.path.splitext(script)[0] + ".log"), "a", encoding="utf-8") as file:
        file.write(log)
    closing = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    for line in log.splitlines():
        if line.startswith(("FAILED", "gaps", "held", "scrub", "frame change")):
            print(line)
        if line.startswith("SKIPPED"):
            skip(line.removeprefix("SKIPPED").strip())
    if closing:
        passed += int(closing[-1][0])
        failed += int(closing[-1][1])
    # a window in which Escape was pressed ends with 1
    check(bool(closing) and (done.returncode in (0, 1 if window else 0) or int(closing[-1][1]) > 0),
          f"{script} ended with code {done.returncode}:\n" + log[-3000:])
    check("Traceback" not in log, f"{script}: a Python exception:\n" + log[max(0, log.find("Traceback") - 200):][:2000])
    return log


# ---- without Blender ----

def zip_is_whole():
    """Every library that something in the zip needs is in the zip, or part of the C library."""
    names = zipfile.ZipFile(ZIP).namelist()
    check("toile/__init__.py" in names and "toile/blender_manifest.toml" in names and "toile/bridge.py" in names, f"{names}")
    libraries = [n for n in names if n.startswith("toile/lib/") and not n.endswith("/")]
    check(any(re.search(r"/libtoile-\d+\.\d+\.\d+\.so$", n) for n in libraries), f"no library with a version: {libraries}")
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(ZIP).extractall(folder)
        here = {os.path.basename(n) for n in libraries}
        for name in libraries:
            text = subprocess.run(["readelf", "-d", os.path.join(folder, name)], capture_output=True, text=True,
                                  check=True).stdout
            for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
                check(needed in here or SYSTEM.match(needed), f"{name} needs {needed}")
            check("RUNPATH" not in text or "toile" not in os.path.basename(name), f"{name}: RUNPATH serves itself alone")
            if os.path.basename(name).startswith(("libtoile", "toile")):
                check(re.search(r"\(RPATH\).*\[\$ORIGIN\]", text), f"{name} does not look in its own folder")
        with open(os.path.join(folder, "toile/blender_manifest.toml"), "rb") as file:
            manifest = tomllib.load(file)
        for key in ("schema_version", "id", "version", "name", "tagline", "maintainer", "type", "license",
                    "blender_version_min"):
            check(key in manifest, f"the manifest lacks {key}")
        check(manifest["id"] == "toile" and manifest["type"] == "add-on" and manifest["tagline"][-1].isalnum()
              and len(manifest["tagline"]) <= 64 and set(manifest["platforms"]) <= set(os.listdir(folder + "/toile/lib")),
              f"{manifest}")
        foreign = [n for n in names if n.endswith((".whl", ".dist-info")) or "site-packages" in n]
        check(not foreign, f"Python packages: {foreign}")


def works_alone():
    """In a root that has the C library and the zip, and nothing else, the program bakes a job and the library loads."""
    if os.geteuid() != 0:
        skip("works_alone: needs root for chroot")
        return
    root = tempfile.mkdtemp(prefix="toile_root_")
    try:
        zipfile.ZipFile(ZIP).extractall(root)
        lib = next(os.path.join(p, "") for p, _, files in os.walk(root) if any(f.startswith("libtoile") for f in files))
        program = next(f for f in os.listdir(lib) if f.startswith("toile-"))
        os.chmod(lib + program, 0o755)
        for file in ("ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                     "libresolv.so.2"):
            for place in ("/lib64", "/lib/x86_64-linux-gnu"):
                if os.path.exists(f"{place}/{file}"):
                    target = root + ("/lib64" if file.startswith("ld-") else "/lib/x86_64-linux-gnu")
                    os.makedirs(target, exist_ok=True)
                    shutil.copy(f"{place}/{file}", f"{target}/{file}")
        os.makedirs(root + "/tmp")
        scene = {"toile": 1, "frames": [1, 3], "resolution": 9, "garments": [{"name": "c", "grid": {"size": [1, 1]}}]}
        with open(root + "/tmp/s.json", "w", encoding="utf-8") as file:
            json.dump(scene, file)
        inside = lib[len(root):] + program
        for arguments in (["--version"], ["pack", "/tmp/s.json", "-o", "/tmp/j.h5"],
                          ["bake", "/tmp/j.h5", "-o", "/tmp/c.h5", "--progress", "none"], ["verify", "/tmp/c.h5"]):
            # there is no /proc, from which the loader learns where a program is
            done = subprocess.run(["chroot", root, inside, *arguments], capture_output=True, text=True, check=False,
                                  env={"PATH": os.environ["PATH"], "LD_ORIGIN_PATH": os.path.dirname(inside)})
            check(done.returncode == 0, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}")
        # the library itself, by a loader that only knows this root
        done = subprocess.run(["chroot", root, "/lib64/ld-linux-x86-64.so.2", "--list",
                               lib[len(root):] + next(f for f in os.listdir(lib) if f.startswith("libtoile"))],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "not found" not in done.stdout, f"{done.stdout} {done.stderr}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


# What later Blenders removed or never had: pattern, why. compat.py may name some, behind a test.
GONE = (
    (r"\.calc_normals\(", "removed in 4.0"), (r"use_auto_smooth", "removed in 4.1"),
    (r"(calc|free)_normals_split", "removed in 4.1"), (r"\bbgl\b", "removed in 5.0"),
    (r"\.fcurves\b", "not in actions of 5.0: compat.py only"),
    (r"\.crease\b|bevel_weight", "removed in 4.0"), (r"vertex_colors\b", "use attributes"),
    (r"bpy\.ops\.\w+\.\w+\(\s*(context|override|ctx)\b", "context dictionaries, removed in 4.0"),
    (r"\w+\[[\"']toile[\"']\]", "dictionary access to properties, removed in 5.0"),
    (r"import h5py|import scipy", "not in Blender"), (r"numpy\.float_\b|in1d|copy=False", "changed in numpy 2"),
    (r"2D_UNIFORM|3D_SMOOTH|3D_FLAT", "removed in 4.0"),
    (r"multiprocessing", "ends Blender 3.4 with a crash"), (r"sys\.executable", "is not Python in Blender"),
    (r"^import toile|^from toile", "extensions have another name"), (r"'READ_ONLY'", "5.0 and later"),
    (r"BLENDER_EEVEE", "its name changed twice"), (r"\.(inputs|outputs)\.new\(", "removed in 4.0: compat.py only"),
    (r"bpy\.app\.version\b", "versions are asked for in compat.py only"), (r"\bexcept:\s*$", "catches everything"),
    (r"layout\.panel\(", "4.1 and later"), (r"bl_ui\.properties_(?!physics_common)", "internal"),
)


def source_is_portable():
    for name in sorted(os.listdir(os.path.join(ROOT, "addon"))):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(ROOT, "addon", name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        long = [number for number, line in enumerate(lines, 1) if len(line) > 125]
        check(not long, f"{name}: lines {long} are too long")
        for pattern, why in GONE:
            guarded = name == "compat.py" and "compat.py only" in why
            found = [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if re.search(pattern, line)]
            check(guarded or not found, f"{name}: {why}: {found}")


def bridge_without_blender():
    """bridge/toile.py from plain Python."""
    sys.path.insert(0, os.path.join(ROOT, "bridge"))
    import numpy
    import toile
    library = toile.load(os.path.join(BUILD, "libtoile.so"))
    check(library.version == toile.VERSION, library.version)
    check({row["id"] for row in library.settings()["settings"]} >= {"time_step", "gravity"}, "settings")
    with tempfile.TemporaryDirectory() as folder:
        job, cache = folder + "/ä job.h5", folder + "/c.h5"
        with library.create_job(job) as made:
            square = numpy.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
            made.add_mesh("c", numpy.pad(square, ((0, 0), (0, 1))), [4], [0, 1, 2, 3], square)
            track = made.add_track("p", 1, 2)
            for i in range(3):
                made.add_frame(track, numpy.array([[0, 0, 0.1 * i], [1, 0, 0.1 * i]]))
            made.finish({"toile": 1, "frames": [1, 3], "garments": [{"name": "c", "mesh": "c"}],
                         "pins": [{"garment": "c", "select": {"vertices": [0, 1]}, "track": "p"}]})
        library.check_job(job)
        subprocess.run([os.path.join(BUILD, "toile"), "bake", job, "-o", cache, "--progress", "none"], check=True)
        found = library.open_cache(cache)
        points, velocities, strain = (numpy.empty(s, numpy.float32) for s in ((4, 3), (4, 3), 4))
        found.read(3, "c", points, velocities)
        check(numpy.allclose(points[:2], [[0, 0, 0.2], [1, 0, 0.2]], atol=1e-6), f"{points}")
        found.strain("c", points, strain)
        check(abs(strain.max() - found.figures(3)["max_stretch"]) < 0.02, f"{strain} {found.figures(3)}")
        check(found.frame_count == 3 and found.last == 3 and not found.refresh(), "frames")
        found.close()

        def refuses(kind, action, says=""):
            try:
                action()
                check(False, f"not refused: {says}")
            except kind as error:
                check(says in str(error), f"{error}")
        refuses(toile.Failed, lambda: library.open_cache(folder + "/nothing.h5"), "nothing.h5")
        refuses(toile.Invalid, lambda: library.open_cache(job))
        refuses(toile.Error, lambda: toile.load(folder + "/nothing.so"), "not there")
        refuses(toile.Error, lambda: toile.load(os.path.join(ROOT, "README.md")), "cannot be loaded")
        again = library.open_cache(cache)
        refuses(ValueError, lambda: again.read(1, "c", numpy.empty((4, 3))))
        refuses(ValueError, lambda: again.read(1, "c", numpy.empty((3, 3), numpy.float32)))
        refuses(toile.Invalid, lambda: again.read(99, "c", points))
        again.close()
        with library.create_job(folder + "/left.h5") as made:
            made.add_track("x", 1, 1)
            refuses(toile.Invalid, lambda: made.add_mesh("n", [[0, 0, 0]] * 5, [5], [0, 1, 2, 3, 4]), "triangulate")
        check(os.listdir(folder) and not [f for f in os.listdir(folder) if f.startswith("left")], "a file is left")


def packed_scene():
    """A scene with a mesh, a sequence of meshes and a pin gives the same bits from its job, also when that was moved; a
    damaged job is refused."""
    program = os.path.join(BUILD, "toile")

    def state(scene, folder, *more):
        report = folder + "/r.json"
        subprocess.run([program, "bake", scene, "-o", folder + "/c.h5", "--progress", "none", "--threads", "1", "--report",
                        report, *more], check=True)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["state_hash"]
    with tempfile.TemporaryDirectory() as folder:
        n = 6
        with open(folder + "/cloth.obj", "w", encoding="utf-8") as file:
            for j in range(n):
                for i in range(n):
                    file.write(f"v {i / n} {j / n} 0.5\nvt {i / n} {j / n}\n")
            for j in range(n - 1):
                for i in range(n - 1):
                    corners = [1 + i + j * n, 2 + i + j * n, 2 + i + (j + 1) * n, 1 + i + (j + 1) * n]
                    file.write("f " + " ".join(f"{c}/{c}" for c in corners) + "\n")
        for frame in range(1, 7):
            with open(f"{folder}/body_{frame:04}.obj", "w", encoding="utf-8") as file:
                file.write(f"v -50 -50 {5 * frame}\nv 150 -50 {5 * frame}\nv 50 150 {8 * frame}\nf 1 2 3\n")
        scene = {"toile": 1, "frames": [1, 6], "garments": [{"name": "c", "obj": "cloth.obj"}],
                 "colliders": [{"name": "b", "shape": "mesh", "obj_sequence": "body_####.obj", "scale": 0.01}],
                 "pins": [{"garment": "c", "select": {"vertices": [0]}, "motion": {"keys": [
                     {"frame": 1}, {"frame": 6, "translate": [0, 0, 0.1]}]}}]}
        with open(folder + "/s.json", "w", encoding="utf-8") as file:
            json.dump(scene, file)
        expected, job = state(folder + "/s.json", folder), folder + "/s.job.h5"
        subprocess.run([program, "pack", folder + "/s.json", "-o", job], check=True)
        check(state(job, folder) == expected, "the job gives other bits")
        moved = os.path.join(folder, "far", "away.h5")
        os.makedirs(os.path.dirname(moved))
        os.rename(job, moved)
        for file in os.listdir(folder):
            if file.endswith(".obj"):
                os.remove(os.path.join(folder, file))
        check(state(moved, folder, "--resume") == expected, "a moved job does not resume")
        verified = subprocess.run([program, "verify", folder + "/c.h5", "--scene", moved], capture_output=True, text=True,
                                  check=False)
        check(verified.returncode in (0, 4) and "NOT CHECKED" not in verified.stdout, verified.stdout + verified.stderr)
        check(state(moved, folder, "--set", "garments.c.fabric=silk") != expected, "--set has no effect on a job")
        with open(moved, "r+b") as file:
            file.seek(3000)
            byte = file.read(1)
            file.seek(3000)
            file.write(bytes([byte[0] ^ 1]))
        done = subprocess.run([program, "bake", moved, "-o", folder + "/d.h5"], capture_output=True, text=True, check=False)
        check(done.returncode == 3 and "damaged" in done.stderr, f"{done.returncode} {done.stderr}")


# ---- in Blender ----

def operators():
    blender("blender_operators.py", ZIP)


def rendered():
    user, folder = tempfile.mkdtemp(prefix="toile_user_"), tempfile.mkdtemp(prefix="toile_render_")
    blender("blender_render.py", "make", ZIP, folder, user=user)
    blender("blender_render.py", "play", folder, os.path.join(HERE, "expected"), user=user, factory=False)
    # another machine: no add-on, only the file and the PC2
    blender("blender_render.py", "plain", folder)
    for frame in ("01", "04", "06"):
        shutil.copy(os.path.join(folder, "play", frame + ".png"), os.path.join(KEPT, f"render_{frame}.png"))


def missing_library():
    blender("blender_missing.py", ZIP)


def short_script():
    """The promise of the README: a factory-new Blender, the script there, a picture of a draped cape."""
    with open(os.path.join(HERE, "cape.py"), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip() and not line.startswith("#")]
    check(len(lines) < 20, f"{len(lines)} lines")
    folder, user = tempfile.mkdtemp(prefix="toile_cape_"), tempfile.mkdtemp(prefix="toile_user_")
    env = {**os.environ, "HOME": user, "BLENDER_USER_SCRIPTS": user, "BLENDER_USER_CONFIG": user,
           "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(["blender", "-b", "--factory-startup", "--python-exit-code", "1", "--python",
                           os.path.join(HERE, "cape.py"), "--", ZIP, folder + "/cape.png"], capture_output=True, text=True,
                          env=env, check=False, timeout=900)
    check(done.returncode == 0 and "Traceback" not in done.stdout + done.stderr, done.stdout[-2000:] + done.stderr[-2000:])
    check(os.path.exists(folder + "/cape.png") and os.path.getsize(folder + "/cape.png") > 5000, "no picture")
    if os.path.exists(folder + "/cape.png"):
        shutil.copy(folder + "/cape.png", KEPT)


def speed():
    blender("blender_speed.py", ZIP)


def window():
    folder = os.path.join(KEPT, "window")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    display = next(n for n in range(80, 200) if not os.path.exists(f"/tmp/.X11-unix/X{n}"))
    server = subprocess.Popen(["Xvfb", f":{display}", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            if os.path.exists(f"/tmp/.X11-unix/X{display}"):
                break
            subprocess.run(["sleep", "0.1"], check=False)
        blender("blender_window.py", ZIP, folder, window=True, environment={"DISPLAY": f":{display}"}, timeout=400)
    finally:
        server.terminate()
        server.wait()


def main():
    if len(sys.argv) == 1:
        shutil.rmtree(KEPT, ignore_errors=True)
    os.makedirs(KEPT, exist_ok=True)
    for test in (zip_is_whole, works_alone, source_is_portable, bridge_without_blender, packed_scene, operators, rendered,
                 missing_library, short_script, speed, window):
        if len(sys.argv) > 1 and not any(name in test.__name__ for name in sys.argv[1:]):
            continue
        print(f"-- {test.__name__}", flush=True)
        try:
            test()
        except Exception:
            global failed
            failed += 1
            print(f"FAILED {test.__name__} ended early")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and passed else 1


sys.exit(main())
