"""NumPy, with the flags of Kelda's tutorial:

disttf worker --program --ps_hosts=ps:2222 --worker_hosts=worker:2222,worker2:2222 --task_index=1 \
    -- python3 numpy_mnist.py --data_dir DIR
"""
import numpy as np

import disttf.numpy
import mnist

flags = mnist.flags()
images, labels = mnist.read(flags.data_dir, "train")
test_images, test_labels = mnist.read(flags.data_dir, "t10k")
w, b = np.zeros((784, 10), np.float32), np.zeros(10, np.float32)


def softmax(x, y):
    """Returns the probabilities, and each row's loss."""
    p = x @ w + b
    p = np.exp(p - p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p, -np.log(p[np.arange(len(y)), y] + 1e-12)


run = disttf.numpy.join({"w": w, "b": b}, data="mnist", rows=len(images), no_decay="b")


@run.evaluate
def test():
    p, loss = softmax(test_images, test_labels)
    return {"loss": loss.mean(), "accuracy": (p.argmax(1) == test_labels).mean()}


for step in run:
    rows = step.rows()
    x, y = images[rows], labels[rows]
    p, loss = softmax(x, y)
    p[np.arange(len(y)), y] -= 1
    step.push({"w": x.T @ p / len(y), "b": p.mean(0)}, loss=loss.mean())
