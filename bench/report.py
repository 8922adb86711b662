#!/usr/bin/env python3
"""Usage: bench/report.py [--write DOCUMENT] RESULTS.jsonl...

Prints the figures of disttf_bench as Markdown tables, one section for each file, that is, for each
machine. A file contains the benchmark's standard output: a line that describes the machine and the
run, then one JSON object for each figure. With --write the tables replace the text between the two
markers of DOCUMENT.
"""
import json
import pathlib
import sys
import textwrap

BEGIN, END = "<!-- bench/report.py: begin -->\n", "<!-- bench/report.py: end -->\n"
MODELS = {"mlp_100": "784-100-10", "mlp_1024": "784-1024-10", "softmax": "softmax", "lenet": "`lenet`",
          "cnn": "`cnn`", "small_cnn": "`small_cnn.toml`"}
LIMIT = "the matrix products alone, on both cores"
JOBS = {"job/sync/1_worker_1_ps": ("784-100-10", "1 worker, 1 ps"),
        "job/sync/2_workers_1_ps": ("784-100-10", "2 workers, 1 ps"),
        "job/sync/2_workers_1_ps/tcp": ("784-100-10", "the same over TCP"),
        "job/async/2_workers_1_ps": ("784-100-10", "2 workers, 1 ps, asynchronous"),
        "job/softmax/2_workers_1_ps": ("softmax", "2 workers, 1 ps"),
        "job/mlp_1024/2_workers_1_ps": ("784-1024-10", "2 workers, 1 ps"),
        "job/lenet/2_workers_1_ps": ("`lenet`", "2 workers, 1 ps"),
        "job/cnn/2_workers_1_ps": ("`cnn`", "2 workers, 1 ps")}
PEERS = {"torch_ddp_2": "PyTorch DistributedDataParallel over gloo, 2 ranks",
         "torch_1_process": "PyTorch, one process, 1 thread",
         "torch_1_process_2_threads": "PyTorch, one process, 2 threads",
         "tensorflow_ps": "TensorFlow parameter server, SyncReplicasOptimizer",
         "tensorflow_ps_async": "TensorFlow parameter server, asynchronous"}
RATIOS = {"price/checkpoints": "a checkpoint every 100 steps",
          "price/elastic_2x100": "elastic workers, 2 micro-batches of 100",
          "price/elastic_4x50": "elastic workers, 4 micro-batches of 50",
          "price/replicas/sync": "`--ps_replicas 2`, synchronous",
          "price/replicas/async": "`--ps_replicas 2`, asynchronous",
          "price/seen": "page, metrics and TensorBoard files"}
BUSY = {"busy/1_loop": "1 busy loop beside it", "busy/2_loops": "2 busy loops", "busy/4_loops": "4 busy loops",
        "busy/8_workers_2_ps": "8 workers and 2 ps on two cores"}


def rate(figure):
    """1234567 -> "1235 k"; three significant digits below 100 k."""
    value = figure["median"] / 1000
    return f"{value:.0f} k" if value >= 100 else f"{value:.3g} k"


def accuracy(figure):
    return f"{figure['accuracy']:.3f}" if "accuracy" in figure else ""


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n\n" if rows else ""


def compared(figures):
    rows = []
    for name, (model, setup) in JOBS.items():
        if name in figures:
            ours, floor = figures[name], figures[figures[name]["floor"]]
            rows.append([model, setup, rate(ours), accuracy(ours), LIMIT, rate(floor), "", f"{ours['ratio']:.2f}"])
    for name, ours in figures.items():
        part = name.split("/")
        if part[0] == "versus" and len(part) == 3 and part[1] in PEERS:
            theirs = figures[name + "/theirs"]
            rows.append([MODELS[part[2]], "asynchronous" if part[1].endswith("async") else "2 workers, 1 ps",
                         rate(ours), accuracy(ours), PEERS[part[1]], rate(theirs), accuracy(theirs),
                         f"{ours['ratio']:.1f}"])
    return table(["model", "disttf", "images/s", "accuracy", "compared with", "images/s", "accuracy", "ratio"], rows)


def ratios(figures, names, head):
    return table(head, [[text, f"{figures[name]['ratio']:.2f}"] for name, text in names.items() if name in figures])


def section(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line]
    run, figures = lines[0], {line["name"]: line for line in lines[1:]}
    text = f"### {run['machine']}\n\n"
    about = f"Commit `{run['commit']}`, {run['isa']}; {run['settings']}. "
    about += f"The figures are {run['origin']}." if "origin" in run else f"Load {run['load'][0]:.1f} at the start."
    text += textwrap.fill(about, 100, break_on_hyphens=False) + "\n\n"
    text += compared(figures)
    text += ratios(figures, RATIOS, ["784-100-10 with", "images/s, relative to a run without it"])
    text += ratios(figures, BUSY, ["784-100-10, shared memory", "images/s, relative to TCP"])
    return text


def main(arguments):
    document = None
    if arguments[:1] == ["--write"]:
        document, arguments = pathlib.Path(arguments[1]), arguments[2:]
    if not arguments:
        raise SystemExit(__doc__)
    text = "".join(section(path) for path in arguments)
    if document is None:
        print(text, end="")
        return
    old = document.read_text()
    before, rest = old.split(BEGIN)
    document.write_text(before + BEGIN + "\n" + text + END + rest.split(END)[1])


if __name__ == "__main__":
    main(sys.argv[1:])
