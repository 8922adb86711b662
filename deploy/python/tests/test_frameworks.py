"""disttf.jax, disttf.tensorflow and disttf.job. Each test skips where its framework is missing."""
import importlib.util
import json
import os
import sys
import zipfile

import pytest

from fake_task import ProgramFailed

np = pytest.importorskip("numpy")


def needs(name):
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason="%s is missing" % name)


JAX = '''
import jax, jax.numpy as jnp, numpy as np, disttf.jax
x = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)
y = x @ np.array([1, 2, 3, 4], np.float32)
params = {"dense": [{"w": jnp.full(4, 0.5), "b": jnp.zeros(())}]}
gradient = jax.jit(jax.value_and_grad(lambda p, x, y: ((x @ p["dense"][0]["w"] + p["dense"][0]["b"] - y) ** 2).mean()))
run = disttf.jax.join(params, rows=100, no_decay="*.b")
@run.evaluate
def test():
    return {"loss": gradient(run.params, x, y)[0]}
for step in run:
    rows = step.rows()
    loss, gradients = gradient(step.params, x[rows], y[rows])
    print(np.asarray(jax.random.uniform(step.key)))
    step.push(gradients, loss=loss)
print(np.asarray(run.params["dense"][0]["w"]).tolist())
'''


@needs("jax")
def test_jax(program):
    task = program(JAX, steps=8)
    task.begin()
    assert [(each["name"], each["shape"], each.get("decays", True)) for each in task.variables] == [
        ("dense.0.b", [], False), ("dense.0.w", [4], True)]
    task.give_initial()
    assert task.values("dense.0.w") == [0.5] * 4
    found = task.compute(0)
    rows = task.rows.of(0, 0, 100)
    x = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)
    y = x @ np.array([1, 2, 3, 4], np.float32)
    error = x[rows] @ np.full(4, 0.5, np.float32) - y[rows]
    assert task.values("dense.0.w", found) == pytest.approx((2 * x[rows].T @ error / len(rows)).tolist(), rel=1e-5)
    for step in (0, 1, 2, 0):
        task.step(step)
    assert 0 < task.evaluate(3)["loss"] < 10
    lines = task.end(8)[0].splitlines()
    assert lines[0] == lines[1] == lines[4] != lines[2]  # of steps 0, 0, 1, 2, 0
    assert json.loads(lines[5]) == task.values("dense.0.w")


@needs("jax")
def test_jax_refuses_another_tree(program):
    task = program(JAX.replace("step.push(gradients", "step.push(gradients['dense']"))
    task.begin()
    with pytest.raises(ProgramFailed, match="ValueError: push.. needs a tree like params"):
        task.compute(0)


KERAS = '''
import numpy as np, tensorflow as tf, disttf.tensorflow
x = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(8, activation="relu"),
                             layers.BatchNormalization(momentum=0.75), layers.Dropout(0.25), layers.Dense(2)])
entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
def test():
    return {"loss": entropy(y, model(x, training=False))}
'''
TAPE = KERAS + '''
run = disttf.tensorflow.join(model, rows=100)
run.evaluate(test)
for step in run:
    rows = step.rows()
    with tf.GradientTape() as tape:
        loss = entropy(y[rows], model(x[rows], training=True))
    gradients = tape.gradient(loss, run.trained)
    print(np.mean(np.maximum(x[rows] @ BEFORE[0] + BEFORE[1], 0), 0).tolist() if BEFORE else "")
    step.push(gradients, loss=loss)
print(model.layers[1].momentum, model.layers[0].get_weights()[1].tolist())
'''
FIT = KERAS + '''
optimizer = disttf.tensorflow.Optimizer(model, evaluate=test)
model.compile(optimizer, entropy)
model.fit(x, y, batch_size=10, epochs=1000, verbose=0)
print(optimizer.run.finished, int(optimizer.iterations.numpy()), model.layers[0].get_weights()[1].tolist())
'''


@needs("tensorflow")
def test_gradient_tape(program):
    task = program(TAPE.replace("BEFORE", "model.layers[0].get_weights()"), steps=8)
    task.begin()
    momenta = [each.get("momentum") for each in task.variables]
    assert momenta == [None] * 6 + [0.75] * 2
    task.give_initial()
    first = task.compute(0)
    assert task.compute(0) == first  # Keras' dropout repeats, too
    mean = task.variables[6]["name"]
    assert mean.endswith("moving_mean")
    task.step(0)
    before = task.evaluate(1)["loss"]
    for step in range(1, 8):
        task.step(step)
    assert task.evaluate(8)["loss"] < before
    lines = task.end(8)[0].splitlines()
    assert task.values(mean, first) == pytest.approx(json.loads(lines[0]), abs=1e-6)  # the batch's own mean
    assert lines[-1].startswith("0.75 [") and json.loads(lines[-1][5:]) == task.values(task.variables[1]["name"])


@needs("tensorflow")
def test_tape_without_gradients_is_an_error(program):
    task = program(TAPE.replace("BEFORE", "0").replace("tape.gradient(loss, run.trained)", "[None] * len(run.trained)"))
    task.begin()
    task.give_initial()
    with pytest.raises(ProgramFailed, match="ValueError: step 0: no variable of run.trained has a gradient"):
        task.compute(0)


@needs("jax")
def test_evaluation_must_return_numbers(program):
    task = program(JAX.replace('return {"loss": gradient(run.params, x, y)[0]}', "pass"))
    task.begin()
    with pytest.raises(ProgramFailed, match="TypeError: test returned None: an evaluation function must return a dict"):
        task.evaluate(0)


@needs("tensorflow")
def test_keras_fit_ends_with_the_run(program):
    task = program(FIT, steps=12)
    task.begin()
    task.give_initial()
    for step in range(12):
        task.step(step)
    assert 0 < task.losses[-1] < 3 and task.evaluate(12)["loss"] > 0
    found = task.end(12)[0].split(" ", 2)
    assert found[:2] == ["True", "12"]
    assert json.loads(found[2]) == task.values(task.variables[1]["name"])


JOB = '''
import numpy as np
def main(server, log_dir, context):
    w = np.zeros(3, np.float32)
    run = server.join({"w": w}, rows=30)
    for step in run:
        step.rows()
        step.push({"w": w - 1}, loss=context["loss"])
    print(server.server_def.job_name, server.server_def.task_index, log_dir, context)
'''


@pytest.mark.parametrize("zipped", [False, True])
def test_job_of_dcos(program, tmp_path, zipped):
    (tmp_path / "mnist.py").write_text(JOB)
    url = tmp_path / "mnist.py"
    if zipped:
        url = tmp_path / "job.zip"
        with zipfile.ZipFile(str(url), "w") as archive:
            archive.write(str(tmp_path / "mnist.py"), "examples/mnist.py")
    task = program("import sys, runpy; runpy.run_module('disttf.job', run_name='__main__')", name="start.py", arguments=[
        "--job_url", "file://" + str(url), "--job_path", "/examples" if zipped else "", "--job_name", "mnist",
        "--job_context", '{"loss": 2.5}', "--log_dir", "/logs"],
        env={"TF_CONFIG": '{"task": {"type": "worker", "index": 3}, "cluster": {}}'})
    task.begin()
    task.give_initial()
    task.step(0)
    assert task.losses == [2.5]
    assert task.end(1)[0] == "worker 3 /logs {'loss': 2.5}\n"


@pytest.mark.parametrize("arguments, sentence", [
    ((), "--job_name must be a module's name (got nothing)"),
    (("--job_name", "mnist", "--job_context", "[1]"), "--job_context must be a JSON object: not an object"),
    (("--job_name", "mnist", "--job_context", "{"), "--job_context must be a JSON object: "),
    (("--job_name", "mnist", "--job_url", "gs://bucket/a.zip"), "--job_url must begin with http://, https:// or file://"),
    (("--job_name", "mnist", "--job_url", "file:///nothing.py"), "--job_url file:///nothing.py: "),
    (("--job_name", "mnist", "--job_path", "x"), "No module named 'mnist'"),
])
def test_wrong_jobs(alone, arguments, sentence):
    found = alone("from disttf import job; job.main()", *arguments)
    assert found.returncode == 1 and sentence in found.stderr


def test_every_module_has_its_python_version():
    """No syntax beyond Python 3.7."""
    import ast
    version = {"feature_version": (3, 7)} if sys.version_info >= (3, 8) else {}
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "disttf")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name)) as file:
                ast.parse(file.read(), name, **version)
