"""The job of bench/job.cc in PyTorch: what most people would use instead of disttf.

    python3 torch_mnist.py --data_dir DIR --ranks 2 --model mlp --steps 2000

The same model, optimizer, batch and split of the data as `disttf launch`, in one process
(--ranks 1) or as DistributedDataParallel over gloo on 127.0.0.1 (--ranks 2 and more, a process and
a thread each). The training set lies in memory as floats before the time starts. Prints one JSON
object; exit code 77 and a sentence where PyTorch is not installed.
"""

import argparse
import gzip
import json
import os
import socket
import sys
import time

try:
    import numpy
    import torch
    import torch.distributed
    import torch.multiprocessing
except ImportError as error:
    print(f"PyTorch cannot be imported: {error}")
    sys.exit(77)

TRAIN_ROWS = 55000  # of 60 000: as read_data_sets splits them
WARM_UP_STEPS = 100


def read_idx(directory, name, header_bytes):
    with gzip.open(os.path.join(directory, name + ".gz"), "rb") as file:
        return torch.from_numpy(
            numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes).copy())


def read_set(directory, name, rows):
    images = read_idx(directory, name + "-images-idx3-ubyte", 16).reshape(rows, 784)
    labels = read_idx(directory, name + "-labels-idx1-ubyte", 8)
    return images.float() / 255.0, labels.long()


def make_model(kind):
    if kind == "softmax":
        return torch.nn.Linear(784, 10)
    hidden = int(kind.removeprefix("mlp_"))
    model = torch.nn.Sequential(
        torch.nn.Linear(784, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    for layer in (model[0], model[2]):
        torch.nn.init.trunc_normal_(
            layer.weight, std=layer.in_features**-0.5, a=-2.0, b=2.0)
        torch.nn.init.zeros_(layer.bias)
    return model


def train(rank, arguments, port, result):
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    model = trained = make_model(arguments.model)
    if arguments.ranks > 1:
        torch.distributed.init_process_group(
            "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=arguments.ranks)
        trained = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(trained.parameters(), lr=0.001)
    loss_of = torch.nn.CrossEntropyLoss()
    images, labels = read_set(arguments.data_dir, "train", 60000)
    images, labels = images[:TRAIN_ROWS], labels[:TRAIN_ROWS]
    rows = arguments.ranks * arguments.batch_size
    order, at = torch.randperm(TRAIN_ROWS), 0
    begin = time.perf_counter()
    for step in range(arguments.steps):
        if step == WARM_UP_STEPS:
            begin = time.perf_counter()
        if at + rows > TRAIN_ROWS:
            order, at = torch.randperm(TRAIN_ROWS), 0
        first = at + rank * arguments.batch_size
        batch = order[first:first + arguments.batch_size]
        at += rows
        optimizer.zero_grad(set_to_none=arguments.ranks == 1)
        loss_of(trained(images[batch]), labels[batch]).backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    if rank == 0:
        test_images, test_labels = read_set(arguments.data_dir, "t10k", 10000)
        with torch.no_grad():
            correct = (model(test_images).argmax(1) == test_labels).float().mean().item()
        result.put((arguments.steps - WARM_UP_STEPS) * rows / seconds)
        result.put(correct)
    if arguments.ranks > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model", default="mlp_100", help="softmax or mlp_UNITS")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--batch_size", type=int, default=100, help="of each rank")
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.steps <= WARM_UP_STEPS:
        parser.error(f"--steps: {arguments.steps} is not allowed, it must be above {WARM_UP_STEPS}")
    # Not every BLAS asks PyTorch how many threads it may use.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    spawn = torch.multiprocessing.get_context("spawn")
    result = spawn.SimpleQueue()
    torch.multiprocessing.spawn(
        train, (arguments, free_port(), result), nprocs=arguments.ranks)
    print(json.dumps({"images_per_second": result.get(), "accuracy": result.get(),
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
