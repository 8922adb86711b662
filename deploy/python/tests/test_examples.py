"""The programs of examples/own compute gradients of MNIST."""
import importlib.util
import os
import pathlib
import sys

import pytest

from fake_task import FakeTask

ROOT = pathlib.Path(__file__).resolve().parents[3]
OWN = ROOT / "examples" / "own"
MNIST = pathlib.Path(os.environ.get("MNIST", str(ROOT.parent / "shared" / "mnist")))
PROGRAMS = {"numpy_mnist": "numpy", "torch_mnist": "torch", "torch_cnn": "torch", "torch_drop_in": "torch",
            "jax_mnist": "jax", "mnist_replica": "tensorflow", "keras_fit": "tensorflow", "dcos_job": "torch"}


@pytest.mark.skipif(not MNIST.exists(), reason="MNIST is missing")
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_example(name):
    if importlib.util.find_spec(PROGRAMS[name]) is None:
        pytest.skip("%s is missing" % PROGRAMS[name])
    command = [sys.executable, str(OWN / (name + ".py")), "--data_dir", str(MNIST)]
    if name == "dcos_job":
        command = [sys.executable, "-m", "disttf.job", "--job_path", "../../examples/own", "--job_name", name,
                   "--job_context", '{"data_dir": "%s"}' % MNIST]
    os.chdir(str(ROOT / "deploy" / "python"))
    env = {"PYTHONPATH": str(ROOT / "deploy" / "python"), "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3",
           }
    with FakeTask(command, steps=3, batch=100, learning_rate=0.1, env=env) as task:
        task.begin()
        task.give_initial()
        for step in range(3):
            task.step(step)
        assert 0 < task.losses[-1] < task.losses[0]
        if task.hello["evaluates"]:
            assert task.evaluate(3)["accuracy"] > 0.15
        task.end(3)
