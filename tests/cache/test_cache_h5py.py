#!/usr/bin/python3
"""An outside reader agrees: reads what `test_cache --write` wrote with plain h5py, by cache/FORMAT.md.

    test_cache_h5py.py TEST_CACHE      the compiled test program
"""
import os
import struct
import subprocess
import sys
import tempfile
import time

try:
    import h5py
    import numpy
except ImportError as missing:
    print(f"SKIPPED: {missing}. The cache was NOT read by an outside reader; install python3-h5py.")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

FIRST, FRAMES, VERTICES = 5, 12, 50
NAMES = ["garment 0", "Rock/übergrößen"]
LINKS = ["garment 0", "Rock%2Fübergrößen"]
NUMBERS = ["steps", "rejected_steps", "iterations", "seconds", "max_stretch", "contacts", "penetrations",
           "kinetic_energy", "elastic_energy", "potential_energy"]
SEED, MASK = 0xCBF29CE484222325, 0xFFFFFFFFFFFFFFFF


def mix(h):
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & MASK
    h = (h ^ h >> 27) * 0x94D049BB133111EB & MASK
    return h ^ h >> 31


def toile_hash(seed, data):
    """As FORMAT.md says, written from it and not from the C."""
    h = seed ^ mix(len(data))
    whole = len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        h = (h ^ word) * 0x100000001B3 & MASK
        h ^= h >> 32
    tail = int.from_bytes(data[whole:], "little")
    return mix((h ^ tail) * 0x100000001B3 & MASK)


def expected_positions(frame, garment):
    i = numpy.arange(3 * (VERTICES + garment))
    values = ((frame * 7919 + garment * 104729 + i * 31) % 4096) / 64.0 - 32
    return values.astype("<f4").reshape(-1, 3)


def expected_velocities(frame, garment):
    i = numpy.arange(3 * (VERTICES + garment))
    return (((frame * 3571 + garment * 7 + i * 17) % 2048) / 128.0).astype("<f4").reshape(-1, 3)


def check_frame(f, i):
    """Everything of one frame against the formulas of test_cache.c, and its checksum."""
    frame = FIRST + i
    assert f["frames/frame"][i] == frame
    assert f["frames/time"][i] == i / 24.0
    assert int(f["frames/state_hash"][i]) == 0x9E3779B97F4A7C15 * frame & MASK
    for k, name in enumerate(NUMBERS):
        assert f["frames"][name][i] == frame + k / 16, name
    head = struct.pack("<qdQ", frame, i / 24.0, int(f["frames/state_hash"][i]))
    checksum = toile_hash(SEED, head)
    for g, link in enumerate(LINKS):
        positions, velocities = f[f"garments/{link}/positions"][i], f[f"garments/{link}/velocities"][i]
        assert numpy.array_equal(positions, expected_positions(frame, g))
        assert numpy.array_equal(velocities, expected_velocities(frame, g))
        checksum = toile_hash(toile_hash(checksum, positions.tobytes()), velocities.tobytes())
    assert int(f["frames/checksum"][i]) == checksum


def test_header(path):
    with h5py.File(path, "r") as f:
        a = f.attrs
        assert a["format"] == b"toile" and a["version"] == 1
        assert a["scene_name"].decode() == "prüfung" and a["library_version"] == b"1.2.3"
        assert a["settings"].decode() == '{"gravity": [0, 0, -9.81]}'
        assert int(a["fingerprint"]) == 0xFEDCBA9876543210 and a["fps"] == 24.0
        assert a["first_frame"] == FIRST and a["last_frame"] == FIRST + 99 and a["garment_count"] == 2
        assert sorted(f["garments"]) == sorted(LINKS)
        assert sorted(f["frames"]) == sorted(["frame", "time", "state_hash", "checksum"] + NUMBERS)


def test_garments(path):
    with h5py.File(path, "r") as f:
        for g, link in enumerate(LINKS):
            group, n = f["garments"][link], VERTICES + g
            assert group.attrs["name"].decode() == NAMES[g] and group.attrs["index"] == g
            t = numpy.arange(n - 2)
            assert numpy.array_equal(group["rest_positions"][:],
                                     (g + 0.25 * numpy.arange(3 * n)).astype("f4").reshape(-1, 3))
            assert numpy.array_equal(group["triangles"][:], t[:, None] + numpy.arange(3))
            assert numpy.array_equal(group["triangle_panels"][:], t % 3)
            assert numpy.array_equal(group["corner_uv"][:],
                                     (0.125 * numpy.arange(6 * len(t))).astype("f4").reshape(-1, 3, 2))
            assert [p.decode() for p in group["panel_names"][:]] == ["front", "dos", "ärmel"]


def test_header_checksum(path):
    with h5py.File(path, "r") as f:
        a = f.attrs
        h = SEED
        for text in (a["scene_name"], a["settings"], a["library_version"]):
            h = toile_hash(h, bytes(text))
        h = toile_hash(h, struct.pack("<Q", int(a["fingerprint"])))
        h = toile_hash(h, struct.pack("<d", a["fps"]))
        h = toile_hash(h, struct.pack("<3i", a["first_frame"], a["last_frame"], a["garment_count"]))
        for group in sorted(f["garments"].values(), key=lambda group: group.attrs["index"]):
            h = toile_hash(h, bytes(group.attrs["name"]))
            for name in ("rest_positions", "triangles", "triangle_panels", "corner_uv"):
                h = toile_hash(h, group[name][:].tobytes())
            for panel in group["panel_names"][:]:
                h = toile_hash(h, bytes(panel))
        assert int(a["header_checksum"]) == h


def test_frames(path):
    with h5py.File(path, "r") as f:
        assert len(f["frames/frame"]) == FRAMES
        for link in LINKS:
            assert f[f"garments/{link}/positions"].shape[0] == FRAMES
        for i in range(FRAMES):
            check_frame(f, i)


def test_example(path):
    """The example of FORMAT.md, as it stands there."""
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cache", "FORMAT.md")
    with open(page, encoding="utf-8") as text:
        code = text.read().split("```python\n")[1].split("```")[0]
    exec(compile(code.replace("bake.h5", path), page, "exec"), {"print": lambda *_: None})


def test_while_written(path):
    """A reader in SWMR mode follows a writer that lives."""
    growing = path + ".growing"
    writer = subprocess.Popen([PROGRAM, "--write", growing, "40"])
    try:
        limit = time.time() + 60
        while not os.path.exists(growing) and time.time() < limit:
            time.sleep(0.005)
        seen, looks = 0, 0
        with h5py.File(growing, "r", libver="latest", swmr=True) as f:
            while seen < FRAMES and time.time() < limit:
                f["frames/frame"].id.refresh()
                count = len(f["frames/frame"])
                if count > seen:
                    for group in list(f["garments"].values()) + [f["frames"]]:
                        for dataset in group.values():
                            if dataset.chunks:
                                dataset.id.refresh()
                for i in range(seen, count):
                    check_frame(f, i)
                seen, looks = count, looks + 1
                time.sleep(0.01)
        assert seen == FRAMES and looks > 3
    finally:
        assert writer.wait() == 0
        os.remove(growing)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv[1])
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache.h5")
        subprocess.run([PROGRAM, "--write", path], check=True)
        for test in (test_header, test_garments, test_header_checksum, test_frames, test_example,
                     test_while_written):
            try:
                test(path)
                passed += 1
            except Exception as problem:  # every test runs, whatever the others did
                failed += 1
                print(f"{test.__name__} FAILED: {type(problem).__name__}: {problem}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
