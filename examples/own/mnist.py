"""MNIST from its four .gz files, and the flags of the tutorials."""
import argparse
import gzip
import os

import numpy as np


def flags():
    """The tutorials' flags. What says who a task is, disttf has used already; the program needs --data_dir alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default=os.environ.get("DATA_DIR", "/input_data"))
    for name in ("ps_hosts", "worker_hosts", "job_name", "task_index", "worker_index", "train_dir"):
        parser.add_argument("--" + name)
    return parser.parse_args()


def read(folder, part):
    """part: "train" or "t10k". Returns images, 0 to 1, as rows of 784, and labels."""
    with gzip.open(os.path.join(folder, part + "-images-idx3-ubyte.gz")) as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(os.path.join(folder, part + "-labels-idx1-ubyte.gz")) as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images.astype(np.float32) / 255, labels.astype(np.int64)
