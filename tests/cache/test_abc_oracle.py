#!/usr/bin/env python3
"""Second opinions on libabc.

    test_abc_oracle.py TEST_ABC [SHARED]

TEST_ABC is the built test program. SHARED (default: $TOILE_SHARED, else ../shared from the
repository root) holds an independent reader and writer, tools/py_ogawa.py, and corpus/abc with
what the reference library reads from each file.

1. The sample archive of `TEST_ABC --write` read by py_ogawa: every value, key and hash.
2. An archive written by py_ogawa read by `TEST_ABC --dump`.
3. The good corpus files: `--dump` against the reference library's account of them.
4. The good corpus files after `--rewrite`: the same to py_ogawa, keys and hashes right.
5. Time to sample index: `--time` against the reference library's answers.

py_ogawa needs numpy, which this python3 or the system's must have; parts 1, 2 and 4 are skipped
without it.
"""
import glob
import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COLUMNS, ROWS, FRAMES = 6, 5, 24
POINTS, FACES = COLUMNS * ROWS, (COLUMNS - 1) * (ROWS - 1)

counts = {'passed': 0, 'failed': 0, 'skipped': 0}


def check(ok, what):
    counts['passed' if ok else 'failed'] += 1
    if not ok:
        print('  failed:', what)


def skip(why):
    counts['skipped'] += 1
    print('SKIPPED:', why)


def dump(program, path):
    run = subprocess.run([program, '--dump', path], capture_output=True)
    if run.returncode:
        check(False, '%s: %s' % (path, run.stderr.decode(errors='replace')))
        return None
    return json.loads(run.stdout.decode('utf-8', 'surrogateescape'), strict=False)


def load_py_ogawa(path):
    if not os.path.exists(path):
        skip('no %s (set TOILE_SHARED)' % path)
        return None
    spec = importlib.util.spec_from_file_location('py_ogawa', path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        # The system's python3 may have what this one has not; ask it once.
        system = '/usr/bin/python3'
        if 'TEST_ABC_ORACLE' not in os.environ and subprocess.run(
                [system, '-c', 'import numpy'], stderr=subprocess.DEVNULL).returncode == 0:
            os.environ['TEST_ABC_ORACLE'] = system
            sys.stdout.flush()
            os.execv(system, [system] + sys.argv)
        skip('py_ogawa.py: %s; run this with a python3 that has numpy' % error)
        return None
    return module


# ---------------------------------------------------------------- 1: what libabc writes

def floats(payload):
    return list(struct.unpack('<%df' % (len(payload) // 4), payload))


def ints(payload):
    return list(struct.unpack('<%di' % (len(payload) // 4), payload))


def doubles(payload):
    return list(struct.unpack('<%dd' % (len(payload) // 8), payload))


def grid_point(p, frame):
    i, j = p % COLUMNS, p // COLUMNS
    return [i * 0.25, j * 0.5, frame * 0.125 + i * j * 0.0625]


def reversed_faces(items, width=1):
    out = []
    for f in range(FACES):
        face = [items[(4 * f + c) * width:(4 * f + c + 1) * width] for c in range(4)]
        for item in reversed(face):
            out += item
    return out


def check_shirt(shirt):
    xform = shirt.props['.xform']
    geom = shirt.find('ShirtShape').props['.geom']
    corners, normals = [], []
    for f in range(FACES):
        p = f // (COLUMNS - 1) * COLUMNS + f % (COLUMNS - 1)
        corners += [p, p + 1, p + COLUMNS + 1, p + COLUMNS]
        for c in range(4):
            normals += [float(c), float(f), 1.0]
    for frame in range(FRAMES):
        raw = lambda name: geom[name].raw(min(frame, geom[name].nsamples - 1))[1]
        points = [grid_point(p, frame) for p in range(POINTS)]
        check(floats(raw('P')) == sum(points, []), 'P of frame %d' % frame)
        check(ints(raw('.faceIndices')) == reversed_faces(corners), 'face indices')
        check(ints(raw('.faceCounts')) == [4] * FACES, 'face counts')
        check(floats(raw('.velocities')) == [0.5 * frame, 0.5 * frame, 3.0] * POINTS, 'velocities')
        box = [f(p[k] for p in points) for f in (min, max) for k in range(3)]
        check(doubles(raw('.selfBnds')) == box, 'bounds')
        check(floats(raw('N')) == reversed_faces(normals, 3), 'normals')
        uv = geom['uv']
        check(ints(uv['.indices'].raw(frame)[1]) == reversed_faces(corners), 'uv indices')
        uvs = [[p % COLUMNS * 0.125, p // COLUMNS * 0.25] for p in range(POINTS)]
        check(floats(uv['.vals'].raw(frame)[1]) == sum(uvs, []), 'uv values')
        arb = geom['.arbGeomParams']
        check(floats(arb['stretch'].raw(frame)[1]) ==
              [1.0 + frame * 0.25 + p for p in range(POINTS)], 'stretch')
        check(ints(arb['panel'].raw(frame)[1]) == [f % 3 for f in range(FACES)], 'panel')
        check(floats(arb['Pref'].raw(frame)[1]) ==
              sum((grid_point(p, 0) for p in range(POINTS)), []), 'Pref')
        check(arb['label'].value(frame) == ['café'], 'label')
        matrix = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, frame * 0.5, frame * 0.25, 2, 1]
        check(doubles(xform['.vals'].raw(frame)[1]) == matrix, 'matrix')
    check(geom['P'].nsamples == FRAMES and geom['uv']['.vals'].first == 0, 'sample counts')
    check(geom['uv'].md[b'sourceName'] == b'UVMap', 'uv name')
    check(geom['uv'].md[b'geoScope'] == b'fvr', 'uv scope')
    check(geom['.velocities'].md == {b'interpretation': b'vector'}, 'velocity metadata')
    check([c.name for c in xform.children] ==
          [b'.inherits', b'.ops', b'.vals', b'isNotConstantIdentity', b'.animChans'],
          'xform properties')
    check(ints(xform['.animChans'].raw(0)[1]) == [12, 13], 'animated channels')
    front = shirt.find('ShirtShape/front').props['.faceset']
    check(ints(front['.faces'].raw(0)[1]) == [2 * i for i in range(FACES // 2)], 'face set')
    check(ints(front['.facesExclusive'].raw(0)[1]) == [1], 'exclusive')


def check_written(program, py, folder):
    path = os.path.join(folder, 'written.abc')
    check(subprocess.run([program, '--write', path]).returncode == 0, '--write')
    archive = py.Archive(path)
    check(archive.md[b'_ai_Application'] == b'test_abc', 'application')
    check(archive.md[b'_ai_DCC_FPS'] == b'24', 'frames per second')
    kinds = [t.kind for t in archive.ts]
    check(kinds == ['uniform', 'uniform', 'acyclic', 'cyclic'], 'time samplings')
    check([t.max_samples for t in archive.ts] == [2, FRAMES, 3, 20], 'max samples')
    check(archive.ts[1].times == [1 / 24] and archive.ts[2].times == [0.0, 0.1, 0.35], 'times')
    check_shirt(archive.top.find('Shirt'))
    plain = archive.top.find('plain node').props
    late = [int(plain['late'].value(i)[0]) for i in range(20)]
    check(late == [7] * 5 + [8] * 3 + [9] * 3 + [7] * 9, 'late')
    check(plain['rank2'].raw(0)[2] == (2, 3), 'dimensions')
    for name in 'string', 'wstring':
        check(plain[name].value(0) == ['one', '', 'dräi 👕'], name)
        check(plain[name].value(1) == [], name)
    result = py.verify(archive)
    print('  written:', result)
    check(result['key_bad'] == result['hash_bad'] == result['bits_bad'] == 0, 'keys and hashes')
    check_reading(program, py, path)


# ---------------------------------------------------------------- 2: what py_ogawa writes

def check_read_back(program, py, folder):
    path = os.path.join(folder, 'by_py.abc')
    w = py.ArchiveWriter(path, {'_ai_Application': 'oracle'})
    ts = w.uniform(0.04, 0.04)
    w.acyclic([0.0, 0.3, 0.9])
    ops = [(kind, 0) for kind in ('t', 'rx', 'ry', 'rz', 'r', 's')]
    x = py.WXform(w.top, 'node', ts, ops)
    mesh = py.WMesh(x.o, 'mesh', ts)
    for i in range(5):
        x.set([i, 2 * i, 0.5, 10 * i, 20, 30, 0, 1, 1, 15 * i, 1, 2, 1 + i])
        points = [[0, 0, i], [1, 0, 0], [1, 1, i], [0, 1, 0]]
        uvs = [[0, 0], [1, 0], [1, 1]]
        mesh.set(points, [0, 3, 2, 1], [4], uv=(uvs, [0, 1, 2, 0], 'fvr', 'map1'),
                 N=([[0, 0, 1]] * 4, None, 'fvr'), vel=[[i, 0, 0]] * 4)
    x.finish()
    mesh.faceset('set', [0], 1)
    mesh.arb().array('label', py.STR, 1, {'geoScope': 'uni', 'isGeomParam': 'true'}, ts).set(['a'])
    w.close()
    check_reading(program, py, path)


def check_reading(program, py, path):
    """--dump against py_ogawa's dump of the same file."""
    mine = dump(program, path)
    if mine is None:
        return
    theirs = py.dump(py.Archive(path))
    check(mine['lib'] == theirs['lib'], 'library version')
    check(mine['ts'] == theirs['ts'], '%s: time samplings' % path)
    compare_object(path, mine['top'], theirs['top'])


# ---------------------------------------------------------------- 3: the reference's account

def unfold(samples):
    """Equal neighbours are folded into a repeat count in the accounts."""
    out = []
    for sample in samples:
        plain = {k: v for k, v in sample.items() if k not in ('repeat', 'status')}
        out += [plain] * sample.get('repeat', 1)
    return out


def compare_property(where, mine, theirs):
    where += '/' + theirs['name']
    for key in 'name', 'kind', 'md', 'pod', 'extent', 'ts', 'samples', 'constant':
        if key in theirs:
            check(mine.get(key) == theirs[key], '%s: %s' % (where, key))
    if 'props' in theirs:
        check(len(mine['props']) == len(theirs['props']), where)
        for a, b in zip(mine['props'], theirs['props']):
            compare_property(where, a, b)
    else:
        a, b = unfold(mine['data']), unfold(theirs['data'])
        # The accounts print floating point scalars in some places; only common keys are compared.
        same = len(a) == len(b) and all(x[k] == y[k] for x, y in zip(a, b) for k in y if k in x)
        check(same, '%s: samples' % where)


def close(a, b):
    return len(a) == len(b) and all(
        math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12) for x, y in zip(a, b))


def compare_object(where, mine, theirs):
    where = where + theirs['path']
    check(mine['path'] == theirs['path'], where + ': path')
    if mine['md'].get('isInstance') == '1' and 'isInstance' not in theirs.get('md', {}):
        return      # the reference library shows the original in place of an instance
    if theirs['path'] != '/' and 'md' in theirs:
        check(mine['md'] == theirs['md'], where + ': metadata')
    check(len(mine['props']) == len(theirs['props']), where + ': properties')
    for a, b in zip(mine['props'], theirs['props']):
        compare_property(where, a, b)
    if 'xform' in theirs and 'xform' in mine:
        a, b = mine['xform'], theirs['xform']
        check(a['samples'] == b['samples'] and a['constant'] == b['constant'], where + ': xform')
        for x, y in zip(unfold(a['frames']), unfold(b['frames'])):
            check(x['inherits'] == y['inherits'], where + ': inherits')
            check(close(x['matrix'], y['matrix']), where + ': matrix')
    if 'mesh' in theirs and 'mesh' in mine:
        a, b = mine['mesh'], theirs['mesh']
        check(a['samples'] == b['samples'] and a['topology'] == b['topology'], where + ': mesh')
        warned = [f['status'] for f in a['frames']]
        for status, x, y in zip(warned, unfold(a['frames']), unfold(b['frames'])):
            for key in x:
                if status == 0 and key in y:
                    check(x[key] == y[key], '%s: %s' % (where, key))
    check(len(mine['children']) == len(theirs['children']), where + ': children')
    for a, b in zip(mine['children'], theirs['children']):
        compare_object(where.split('/')[0], a, b)


def good_files(shared):
    return [p for part in ('made', 'wild') for p in
            sorted(glob.glob(os.path.join(shared, 'corpus', 'abc', part, '*.abc')))]


def check_accounts(program, shared):
    files = [p for p in good_files(shared) if os.path.exists(p[:-4] + '.json')]
    if not files:
        skip('no corpus in %s (set TOILE_SHARED)' % shared)
    for path in files:
        with open(path[:-4] + '.json', encoding='utf-8', errors='surrogateescape') as stream:
            theirs = json.load(stream)
        mine = dump(program, path)
        if mine is None:
            continue
        check(mine['archive_md'] == theirs['archive_md'], path + ': metadata')
        check(close(mine['time_range'], theirs['time_range']), path + ': time range')
        for a, b in zip(mine['ts'], theirs['ts']):
            for key in 'kind', 'times', 'max':
                check(a[key] == b[key], '%s: time sampling: %s' % (path, key))
        compare_object(os.path.basename(path) + ' ', mine['top'], theirs['top'])
    print('  %d files against the reference library' % len(files))


# ---------------------------------------------------------------- 4: rewriting

def check_rewritten(program, py, shared, folder):
    path = os.path.join(folder, 'again.abc')
    same_size = files = 0
    for source in good_files(shared):
        run = subprocess.run([program, '--rewrite', source, path], capture_output=True)
        check(run.returncode == 0, '%s: %s' % (source, run.stderr.decode(errors='replace')))
        if run.returncode:
            continue
        before, after = py.Archive(source), py.Archive(path)
        a, b = py.dump(before), py.dump(after)
        a['lib'] = b['lib'] = 0
        check(a == b, source + ': differs after rewriting')
        # Top-level hashes cover everything below.
        check(before.top.hashes == after.top.hashes, source + ': hashes')
        result = py.verify(after)
        check(result['key_bad'] == result['hash_bad'] == result['bits_bad'] == 0,
              source + ': keys')
        files += 1
        same_size += os.path.getsize(source) == os.path.getsize(path)
    print('  %d files rewritten, %d to the same size' % (files, same_size))


# ---------------------------------------------------------------- 5: times

def check_times(program, shared):
    path = os.path.join(shared, 'corpus', 'abc', 'timesampling_vectors.json')
    if not os.path.exists(path):
        skip('no %s (set TOILE_SHARED)' % path)
        return
    with open(path) as stream:
        cases = json.load(stream)
    lines, expected = [], []
    for case in cases:
        kind = ['uniform', 'cyclic', 'acyclic'].index(case['kind'])
        period = 0.0 if kind == 2 else case['tpc']
        lines.append('%d %r %d %s %d %d %s' % (
            kind, period, len(case['times']), ' '.join(map(repr, case['times'])), case['samples'],
            len(case['queries']), ' '.join(repr(q[0]) for q in case['queries'])))
        expected += [(case['kind'], case['samples'], q) for q in case['queries']]
    run = subprocess.run([program, '--time'], input='\n'.join(lines), capture_output=True,
                         text=True)
    answers = [list(map(int, line.split())) for line in run.stdout.splitlines()]
    check(len(answers) == len(expected), 'number of answers')
    for answer, (kind, samples, query) in zip(answers, expected):
        check(answer == query[1:], 'time %r of %d %s samples: %s' % (query, samples, kind, answer))
    print('  %d time queries' % len(answers))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    shared = sys.argv[2] if len(sys.argv) > 2 else os.environ.get(
        'TOILE_SHARED', os.path.join(ROOT, '..', 'shared'))
    py = load_py_ogawa(os.path.join(shared, 'tools', 'py_ogawa.py'))
    with tempfile.TemporaryDirectory() as folder:
        if py:
            check_written(program, py, folder)
            check_read_back(program, py, folder)
            check_rewritten(program, py, shared, folder)
        check_accounts(program, shared)
        check_times(program, shared)
    print('%(passed)d passed, %(failed)d failed, %(skipped)d skipped' % counts)
    sys.exit(1 if counts['failed'] else 0)


if __name__ == '__main__':
    main()
