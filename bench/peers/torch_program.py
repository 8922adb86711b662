"""The program of `disttf launch --program -- python3 torch_program.py --data_dir DIR --model lenet`:
the models of torch_mnist.py, whose gradients disttf's parameter servers apply.

    python3 torch_program.py --compare --disttf build/release/disttf --data_dir DIR --model lenet

runs it with 2 workers and 1 ps in turn with torch_mnist.py --ranks 2 (DistributedDataParallel over
gloo), PAIRS times, and prints both rates, their ratio, and the accuracies. The Python package of
disttf must be importable.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

import torch
import torch_mnist

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 100


def train(arguments):
    import disttf.torch  # not for --compare

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch_mnist.make_model(arguments.model)
    if arguments.channels_last:
        model = model.to(memory_format=torch.channels_last)
    loss_of = torch.nn.CrossEntropyLoss()
    images, labels = torch_mnist.read_set(arguments.data_dir, "train", 60000)
    images, labels = images[:torch_mnist.TRAIN_ROWS], labels[:torch_mnist.TRAIN_ROWS]
    run = disttf.torch.join(model, data="mnist", rows=len(images), zero_copy=arguments.zero_copy)

    @run.evaluate
    def evaluate():
        return {"accuracy": torch_mnist.accuracy_of(model, arguments.data_dir)}

    for step in run:
        rows = step.rows()
        model.train()
        loss = loss_of(model(images[rows]), labels[rows])
        loss.backward()
        step.push(loss=loss)


def ours(arguments):
    """Returns (images/s, accuracy)."""
    words = [arguments.disttf, "launch", "--workers=2", "--ps=1", "--optimizer=adam",
             "--learning_rate=0.001", "--learning_rate_decay=none", f"--batch_size={BATCH}",
             f"--train_steps={arguments.steps}", "--program_spare=false", "--log_every=0",
             "--program", "--", sys.executable, os.path.abspath(__file__),
             "--data_dir", arguments.data_dir, "--model", arguments.model]
    words += ["--channels_last"] if arguments.channels_last else []
    words += ["--zero_copy"] if arguments.zero_copy else []
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    rate = re.search(r"worker:0\].*\((\d+) (?:images|rows)/s\)", done.stderr)
    accuracy = re.search(r"^mnist accuracy: ([0-9.]+)$", done.stdout, re.MULTILINE)
    return float(rate.group(1)), float(accuracy.group(1))


def theirs(arguments):
    words = [sys.executable, os.path.join(HERE, "torch_mnist.py"), "--ranks=2", "--model",
             arguments.model, "--data_dir", arguments.data_dir, f"--steps={arguments.steps}"]
    words += ["--channels_last"] if arguments.channels_last else []
    found = json.loads(subprocess.run(words, check=True, capture_output=True,
                                      text=True).stdout.strip().splitlines()[-1])
    return found["images_per_second"], found["accuracy"]


def compare(arguments):
    pairs = []
    for _ in range(arguments.pairs):
        (our_rate, our_accuracy), (their_rate, their_accuracy) = ours(arguments), theirs(arguments)
        pairs.append(our_rate / their_rate)
        print(json.dumps({"model": arguments.model, "ours": our_rate, "ddp": their_rate,
                          "ratio": round(pairs[-1], 3), "our_accuracy": our_accuracy,
                          "ddp_accuracy": their_accuracy}), flush=True)
    print(f"{arguments.model}: median ratio {statistics.median(pairs):.2f} of {len(pairs)} pairs")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model", default="mlp_100")
    parser.add_argument("--channels_last", action="store_true")
    parser.add_argument("--zero_copy", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--disttf", default="disttf")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    compare(arguments) if arguments.compare else train(arguments)


if __name__ == "__main__":
    main()
