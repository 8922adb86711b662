"""Runs the job of bench/job.cc in PyTorch, the most common alternative to disttf.

    python3 torch_mnist.py --data_dir DIR --ranks 2 --model lenet --steps 2000

The same model, optimizer, batch and split of the data as `disttf launch`, in one process
(--ranks 1) or as DistributedDataParallel over gloo on 127.0.0.1 (--ranks 2 and more, a process and
a thread each). The training set is in memory as floats before the measurement starts. Prints one JSON
object; exits with 77 and a message if PyTorch is not installed.
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

TRAIN_ROWS = 55000  # of 60 000: the split of read_data_sets
WARM_UP_STEPS = 100


def read_idx(directory, name, header_bytes):
    with gzip.open(os.path.join(directory, name + ".gz"), "rb") as file:
        return torch.from_numpy(
            numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes).copy())


def read_set(directory, name, rows):
    images = read_idx(directory, name + "-images-idx3-ubyte", 16).reshape(rows, 784)
    labels = read_idx(directory, name + "-labels-idx1-ubyte", 8)
    return images.float() / 255.0, labels.long()


def convolution(inputs, channels, kernel, *between):
    return [torch.nn.Conv2d(inputs, channels, kernel, padding=kernel // 2), *between,
            torch.nn.ReLU()]


# The layers of math/model_spec.cc and of small_cnn.toml. Images have PyTorch's shape, channels
# first.
def layers_of(kind):
    linear, image = torch.nn.Linear, torch.nn.Unflatten(1, (1, 28, 28))
    if kind == "softmax":
        return [linear(784, 10)]
    if kind == "lenet":
        return [image, *convolution(1, 32, 5), torch.nn.MaxPool2d(2),
                *convolution(32, 64, 5), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                linear(7 * 7 * 64, 1024), torch.nn.ReLU(), torch.nn.Dropout(0.5), linear(1024, 10)]
    if kind == "cnn":
        return [image, *convolution(1, 16, 3), *convolution(16, 16, 3), torch.nn.MaxPool2d(2),
                *convolution(16, 32, 3), *convolution(32, 32, 3), torch.nn.MaxPool2d(2),
                torch.nn.Flatten(), torch.nn.Dropout(0.4), linear(7 * 7 * 32, 10)]
    if kind == "small_cnn":
        layers, inputs = [image], 1
        for channels in (8, 16, 32):
            layers += convolution(inputs, channels, 3, torch.nn.BatchNorm2d(channels))
            layers += [torch.nn.MaxPool2d(2)]
            inputs = channels
        return [*layers, torch.nn.Flatten(), torch.nn.Dropout(0.4), linear(3 * 3 * 32, 32),
                torch.nn.ReLU(), linear(32, 10)]
    if kind == "mlp_10m":  # 10 million parameters
        return [linear(784, 2800), torch.nn.ReLU(), linear(2800, 2800), torch.nn.ReLU(),
                linear(2800, 10)]
    hidden = int(kind.removeprefix("mlp_"))
    return [linear(784, hidden), torch.nn.ReLU(), linear(hidden, 10)]


def make_model(kind):
    model = torch.nn.Sequential(*layers_of(kind))
    for layer in model:
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            gain = 2 if isinstance(layer, torch.nn.Conv2d) else 1
            deviation = (gain / layer.weight[0].numel())**0.5
            torch.nn.init.trunc_normal_(
                layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            torch.nn.init.zeros_(layer.bias)
    return model


def accuracy_of(model, directory):
    images, labels = read_set(directory, "t10k", 10000)
    model.eval()
    with torch.no_grad():
        # Evaluates in pieces: lenet's activations for all images at once would take a gigabyte.
        guesses = torch.cat([model(piece).argmax(1) for piece in images.split(1000)])
    return (guesses == labels).float().mean().item()


def train(rank, arguments, port, result):
    # Each rank drops different units. Rank 0 broadcasts the weights; the order of images is the
    # same on all ranks.
    torch.manual_seed(1 + rank)
    shuffle = torch.Generator().manual_seed(1)
    torch.set_num_threads(arguments.threads)
    model = trained = make_model(arguments.model)
    if arguments.channels_last:
        model = trained = model.to(memory_format=torch.channels_last)
    if arguments.ranks > 1:
        torch.distributed.init_process_group(
            "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=arguments.ranks)
        trained = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(trained.parameters(), lr=0.001)
    loss_of = torch.nn.CrossEntropyLoss()
    images, labels = read_set(arguments.data_dir, "train", 60000)
    images, labels = images[:TRAIN_ROWS], labels[:TRAIN_ROWS]
    rows = arguments.ranks * arguments.batch_size
    order, at = torch.randperm(TRAIN_ROWS, generator=shuffle), 0
    begin = time.perf_counter()
    for step in range(arguments.steps):
        if step == WARM_UP_STEPS:
            begin = time.perf_counter()
        if at + rows > TRAIN_ROWS:
            order, at = torch.randperm(TRAIN_ROWS, generator=shuffle), 0
        first = at + rank * arguments.batch_size
        batch = order[first:first + arguments.batch_size]
        at += rows
        optimizer.zero_grad(set_to_none=arguments.ranks == 1)
        loss_of(trained(images[batch]), labels[batch]).backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    if rank == 0:
        result.put((arguments.steps - WARM_UP_STEPS) * rows / seconds)
        result.put(accuracy_of(model, arguments.data_dir))
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
    parser.add_argument("--model", default="mlp_100",
                        help="softmax, mlp_UNITS, mlp_10m, lenet, cnn or small_cnn")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--batch_size", type=int, default=100, help="of each rank")
    parser.add_argument("--channels_last", action="store_true",
                        help="images lie in memory as disttf has them, which may be faster")
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.steps <= WARM_UP_STEPS:
        parser.error(f"--steps: {arguments.steps} is not allowed, it must be above {WARM_UP_STEPS}")
    # Some BLAS libraries ignore PyTorch's setting of the number of threads.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    spawn = torch.multiprocessing.get_context("spawn")
    result = spawn.SimpleQueue()
    torch.multiprocessing.spawn(
        train, (arguments, free_port(), result), nprocs=arguments.ranks)
    print(json.dumps({"images_per_second": result.get(), "accuracy": result.get(),
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
