"""disttf.numpy and disttf.load."""
import hashlib
import json
import struct

import pytest

np = pytest.importorskip("numpy")

import disttf  # noqa: E402
from fake_task import ProgramFailed  # noqa: E402

PLANE = '''
    import numpy as np, disttf.numpy
    x = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)
    y = x @ np.array([1, 2, 3, 4], np.float32)
    w, b = np.full(4, 0.5, np.float32), np.zeros((), np.float32)
    run = disttf.numpy.join({"w": w, "b": b}, data="plane", rows=100, OPTIONS)
    @run.evaluate
    def test():
        return {"loss": np.mean((x @ w + b - y) ** 2)}
    for step in run:
        rows = step.rows()
        error = x[rows] @ w + b - y[rows]
        PUSH
    print(w, b)
'''
PUSH = 'step.push({"w": x[rows].T @ error / len(rows), "b": error.mean()}, loss=(error ** 2).mean() / 2, rows=len(rows))'
IN_PLACE = ('step.gradients["w"][...] = x[rows].T @ error / len(rows); step.gradients["b"][...] = error.mean(); '
            'step.push(loss=(error ** 2).mean() / 2)')


def text(push=PUSH, options=""):
    return PLANE.replace("PUSH", push).replace("OPTIONS", options)


@pytest.mark.parametrize("push", [PUSH, IN_PLACE])
def test_learns(program, push):
    task = program(text(push), steps=60, learning_rate=0.2)
    task.begin()
    assert task.hello["data"] == "plane"
    task.give_initial()
    assert task.values("w") == [0.5] * 4
    for step in range(60):
        task.step(step)
    assert task.evaluate(60)["loss"] < 0.01
    assert np.allclose(task.values("w"), [1, 2, 3, 4], atol=0.2)
    task.end(60)


def test_options_of_variables(program):
    task = program(text(options='no_decay=["b"], rates={"*": 0.5}, statistics={"w": 0.9}'))
    task.begin()
    w, b = task.variables
    assert (w["momentum"], w["decays"], w["rate_factor"]) == (0.9, False, 0.5)
    assert b["decays"] is False and "momentum" not in b


@pytest.mark.parametrize("push, sentence", [
    ('step.push({"w": w}, loss=0)', "push.. needs the gradients of w, b .got w"),
    ('step.push({"w": w, "b": w}, loss=0)', r"the gradient of b has shape \(4,\), the variable \(\)"),
])
def test_wrong_gradients_are_refused(program, push, sentence):
    task = program(text(push))
    task.begin()
    with pytest.raises(ProgramFailed, match=sentence):
        task.compute(0)


@pytest.mark.parametrize("body, sentence", [
    ('disttf.numpy.join({"w": np.zeros(3)})', "TypeError: w must be a writable float32 array"),
    ('disttf.numpy.join({"a b": np.zeros(3, "f")}).begin()', "a variable's name is 1 to 256 printable"),
    ('disttf.numpy.join({"w": np.zeros((0, 3), "f")}).begin()', "variable w has no elements"),
    ('disttf.numpy.join({}).begin()', "there is nothing to train"),
    ('disttf.numpy.join({"w": np.zeros(3, "f")}, no_decay="v*")', "no variable's name matches 'v.'; there are w"),
])
def test_variables_that_cannot_be(program, body, sentence):
    task = program("import numpy as np, disttf.numpy\n%s\n" % body)
    with pytest.raises(ProgramFailed, match=sentence):
        task.begin()


def test_write_to_the_parameters_memory_is_refused_by_numpy(program):
    task = program(text('run._parameters["w"][0] = 1'))
    task.begin()
    with pytest.raises(ProgramFailed, match="read-only"):
        task.compute(0)


def test_random_numbers_are_a_function_of_the_step(program):
    task = program(text(PUSH + "; print(np.random.rand(), step.generator().random())"))
    task.begin()
    for step in (0, 1, 0):
        task.compute(step)
    first, second, again = task.end(1)[0].splitlines()[:3]
    assert first == again != second


# Checkpoints, as docs/checkpoint_format.md shows them.
def tensors(entries, metadata=None):
    header, data = {"__metadata__": metadata or {"disttf_format": "1", "step": "5"}}, b""
    for name, array in entries.items():
        array = np.asarray(array, np.float32)
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def checkpoint(folder, files, optimizer, variables, step=1):
    folder.mkdir(parents=True)
    sums = {}
    for number, entries in enumerate(files):
        (folder / ("model-%d.safetensors" % number)).write_bytes(tensors(entries))
        sums.update({name: hashlib.sha256(np.asarray(array, np.float32).tobytes()).hexdigest()
                     for name, array in entries.items()})
    index = {"files": [{"name": "model-%d.safetensors" % number} for number in range(len(files))], "optimizer": optimizer,
             "step": step, "sha256": sums, "variables": [{"name": name, "shape": shape} for name, shape in variables.items()]}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"disttf": index, "weight_map": {}}))


def test_load_assembles_the_ranges_of_a_checkpoint(tmp_path):
    checkpoint(tmp_path / "checkpoint-00000005",
               [{"w:0-4": [0, 1, 2, 3], "w/m:0-4": [9, 9, 9, 9]}, {"w:4-6": [4, 5], "b": 7.0, "w/m:4-6": [9, 9], "b/m": 9.0}],
               ["m"], {"w": [2, 3], "b": []})
    found = disttf.load(tmp_path)
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and found["b"] == 7 and found.keys() == {"w", "b"}
    assert found["w"].dtype == np.float32 and found["w"].flags.writeable


def test_load_takes_the_newest_checkpoint_and_the_average(tmp_path):
    checkpoint(tmp_path / "checkpoint-00000009", [{"w": [1.0]}], [], {"w": [1]})
    checkpoint(tmp_path / "checkpoint-00000010", [{"w": [2.0]}], [], {"w": [1]})
    checkpoint(tmp_path / "checkpoint-00000010-2", [{"w": [3.0], "w/average": [4.0]}], ["average"], {"w": [1]})
    (tmp_path / "checkpoint-00000011.partial-0487d606f6e65f07").mkdir()
    assert disttf.load(tmp_path)["w"].tolist() == [4]
    assert disttf.load(str(tmp_path / "checkpoint-00000009"))["w"].tolist() == [1]


def test_load_refuses_damage(tmp_path):
    checkpoint(tmp_path / "checkpoint-00000005", [{"w": [1.0, 2.0]}], [], {"w": [2]})
    path = tmp_path / "checkpoint-00000005" / "model-0.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(ValueError, match="w is damaged: its SHA-256 differs"):
        disttf.load(tmp_path)
    path.write_bytes(good[:-4])
    with pytest.raises(ValueError, match="w has the wrong size"):
        disttf.load(tmp_path)
    path.write_bytes(good[:6])
    with pytest.raises(ValueError, match="is no safetensors file"):
        disttf.load(tmp_path)


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint in"):
        disttf.load(tmp_path)
    checkpoint(tmp_path / "checkpoint-00000005", [{"w:0-2": [1.0, 2.0]}], [], {"w": [3]})
    with pytest.raises(ValueError, match="1 numbers of w are missing"):
        disttf.load(tmp_path)


def test_load_of_one_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(tensors({"fc.weight": [[1, 2], [3, 4]], "fc.bias": [5, 6]}))
    assert {name: array.tolist() for name, array in disttf.load(path).items()} == {
        "fc.weight": [[1, 2], [3, 4]], "fc.bias": [5, 6]}
