"""JAX. Under `disttf render tfjob --program` the task comes from TF_CONFIG, which disttf reads:

disttf train --program -- python3 jax_mnist.py --data_dir DIR
"""
import jax
import jax.numpy as jnp

import disttf.jax
import mnist

flags = mnist.flags()
images, labels = mnist.read(flags.data_dir, "train")
test_images, test_labels = mnist.read(flags.data_dir, "t10k")
first, second = jax.random.split(jax.random.key(1))
params = {"hidden": {"w": jax.random.normal(first, (784, 100)) / 28, "b": jnp.zeros(100)},
          "out": {"w": jax.random.normal(second, (100, 10)) / 10, "b": jnp.zeros(10)}}


def predict(params, x):
    hidden = jax.nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss_of(params, x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(predict(params, x)), y[:, None], 1).mean()


gradient = jax.jit(jax.value_and_grad(loss_of))
run = disttf.jax.join(params, data="mnist", rows=len(images), no_decay="*.b")


@run.evaluate
def test():
    return {"loss": loss_of(run.params, test_images, test_labels),
            "accuracy": (predict(run.params, test_images).argmax(1) == test_labels).mean()}


for step in run:
    rows = step.rows()
    loss, gradients = gradient(step.params, images[rows], labels[rows])
    step.push(gradients, loss=loss)
