"""Runs the job of bench/job.cc in TensorFlow, deployed as in its tutorials, which disttf replaces.

    python3 tensorflow_ps.py --data_dir DIR --workers 2 --model mlp_100 --steps 2000

The same model, optimizer, batch and split of the data as `disttf launch`, with tf.compat.v1:
between-graph replication, one parameter server and the workers as processes of their own on
127.0.0.1, SyncReplicasOptimizer or, with --async, none. The training set is in memory as floats
before the measurement starts. Prints one JSON object; exits with 77 and a message if TensorFlow is not
installed.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import socket
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

TRAIN_ROWS = 55000  # of 60 000: the split of read_data_sets
WARM_UP_STEPS = 100

try:
    import numpy
    import tensorflow.compat.v1 as tf
except ImportError as error:
    print(f"TensorFlow cannot be imported: {error}")
    sys.exit(77)


def read_idx(directory, name, header_bytes):
    with gzip.open(os.path.join(directory, name + ".gz"), "rb") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes)


def read_set(directory, name, rows):
    images = read_idx(directory, name + "-images-idx3-ubyte", 16).reshape(rows, 784)
    labels = read_idx(directory, name + "-labels-idx1-ubyte", 8)
    return images.astype(numpy.float32) / numpy.float32(255), labels.astype(numpy.int64)


def layer(values, name, inputs, units, is_hidden):
    weights = tf.get_variable(
        name + "_w", [inputs, units],
        initializer=tf.truncated_normal_initializer(stddev=inputs**-0.5))
    biases = tf.get_variable(name + "_b", [units], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(values, weights, biases)
    return tf.nn.relu(logits) if is_hidden else logits


def make_logits(kind, images):
    if kind == "softmax":
        return layer(images, "sm", 784, 10, False)
    units = int(kind.removeprefix("mlp_"))
    return layer(layer(images, "hid", 784, units, True), "sm", units, 10, False)


class Graph:
    """One worker's copy of the graph; its variables are on the ps."""

    def __init__(self, arguments, index):
        self.images = tf.placeholder(tf.float32, [None, 784])
        self.labels = tf.placeholder(tf.int64, [None])
        self.global_step = tf.train.get_or_create_global_step()
        logits = make_logits(arguments.model, self.images)
        self.correct = tf.reduce_mean(
            tf.cast(tf.equal(tf.argmax(logits, 1), self.labels), tf.float32))
        loss = tf.losses.sparse_softmax_cross_entropy(self.labels, logits)
        optimizer = tf.train.AdamOptimizer(0.001)
        self.hooks = []
        if not arguments.is_async:
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=arguments.workers,
                total_num_replicas=arguments.workers)
            self.hooks.append(optimizer.make_session_run_hook(index == 0))
        self.train = optimizer.minimize(loss, global_step=self.global_step)


def session_config(arguments):
    return tf.ConfigProto(intra_op_parallelism_threads=arguments.threads)


def serve(arguments, cluster, job, index):
    return tf.train.Server(
        tf.train.ClusterSpec(cluster), job_name=job, task_index=index,
        config=session_config(arguments))


def run_ps(arguments, cluster):
    serve(arguments, cluster, "ps", 0).join()


def run_worker(arguments, cluster, index, initialized, result):
    tf.disable_v2_behavior()
    server = serve(arguments, cluster, "worker", index)
    device = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(cluster), worker_device=f"/job:worker/task:{index}")
    with tf.Graph().as_default(), tf.device(device):
        tf.set_random_seed(1)
        graph = Graph(arguments, index)
        if index > 0:
            initialized.wait()  # a worker that checks too early checks again after half a minute
        session = tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=index == 0, hooks=graph.hooks,
            config=session_config(arguments), save_summaries_steps=None,
            save_summaries_secs=None, log_step_count_steps=None)
        if index == 0:
            initialized.set()
        rate = train(arguments, index, graph, session)
        if index == 0:
            images, labels = read_set(arguments.data_dir, "t10k", 10000)
            # Bypasses the hooks, which would wait for a step of all workers.
            accuracy = session._tf_sess().run(
                graph.correct, {graph.images: images, graph.labels: labels})
            result.put((rate, float(accuracy)))
    os._exit(0)  # the session would wait for its threads for two minutes


def train(arguments, index, graph, session):
    images, labels = read_set(arguments.data_dir, "train", 60000)
    images, labels = images[:TRAIN_ROWS], labels[:TRAIN_ROWS]
    rows = arguments.workers * arguments.batch_size
    random = numpy.random.default_rng(1)
    order, at = random.permutation(TRAIN_ROWS), 0
    step = first = begin = 0
    while step < arguments.steps:
        if begin == 0 and step >= WARM_UP_STEPS:
            begin, first = time.perf_counter(), step
        if at + rows > TRAIN_ROWS:
            order, at = random.permutation(TRAIN_ROWS), 0
        begin_row = at + index * arguments.batch_size
        batch = order[begin_row:begin_row + arguments.batch_size]
        at += rows
        _, step = session.run(
            [graph.train, graph.global_step],
            {graph.images: images[batch], graph.labels: labels[batch]})
    seconds = time.perf_counter() - begin
    rows_per_step = arguments.batch_size if arguments.is_async else rows
    return (step - first) * rows_per_step / seconds


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model", default="mlp_100", help="softmax or mlp_UNITS")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--async", dest="is_async", action="store_true")
    parser.add_argument("--threads", type=int, default=1, help="of each process, in one operation")
    parser.add_argument("--batch_size", type=int, default=100, help="of each worker")
    parser.add_argument("--steps", type=int, default=2000, help="global steps")
    arguments = parser.parse_args()
    if arguments.steps <= WARM_UP_STEPS:
        parser.error(f"--steps: {arguments.steps} is not allowed, it must be above {WARM_UP_STEPS}")
    addresses = [f"127.0.0.1:{port}" for port in free_ports(1 + arguments.workers)]
    cluster = {"ps": addresses[:1], "worker": addresses[1:]}
    spawn = multiprocessing.get_context("spawn")
    initialized, result = spawn.Event(), spawn.SimpleQueue()
    tasks = [spawn.Process(target=run_ps, args=(arguments, cluster), daemon=True)]
    tasks += [
        spawn.Process(
            target=run_worker, args=(arguments, cluster, index, initialized, result), daemon=True)
        for index in range(arguments.workers)]
    for task in tasks:
        task.start()
    tasks[1].join()  # the chief
    for task in tasks:
        task.kill()  # a TensorFlow ps never exits on its own
        task.join()
    if result.empty():
        sys.exit("the chief ended without a result")
    rate, accuracy = result.get()
    print(json.dumps({"images_per_second": rate, "accuracy": accuracy,
                      "tensorflow": tf.version.VERSION}))


if __name__ == "__main__":
    main()
