"""Writes what TensorBoard shows of a directory to a file as JSON, by sending the requests of its pages to
a real server.

Usage: read_tensorboard.py fast|slow DIR STEP FILE

fast: with the loader in Rust, the default where it is installed; slow: with the one in Python. Both read
while TensorBoard already answers. So this program repeats its requests, for up to a minute, until the
responses have reached STEP and the end of the run.
"""

import base64
import json
import logging
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from tensorboard import default
from tensorboard import program


class Pages:
    """The server's responses to the requests of its pages."""

    def __init__(self, url):
        self._url = url.rstrip("/")

    def bytes_of(self, path, **query):
        where = self._url + "/data/" + path
        if query:
            where += "?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(where, timeout=60) as answer:
            return answer.read()

    def of(self, path, **query):
        return json.loads(self.bytes_of(path, **query))


def series(pages, plugin):
    """Returns the list of [step, value] for each run and tag."""
    where = f"plugin/{plugin}/"
    return {
        run: {
            tag: [
                [step, value]
                for _, step, value in pages.of(where + plugin, run=run, tag=tag)
            ]
            for tag in of_run
        }
        for run, of_run in pages.of(where + "tags").items()
    }


def scalars(pages):
    return series(pages, "scalars")


def histograms(pages):
    return series(pages, "histograms")


def images(pages):
    found = {}
    for run, tags in pages.of("plugin/images/tags").items():
        for tag, about in tags.items():
            samples = []
            for sample in range(about["samples"]):
                shown = pages.of("plugin/images/images", run=run, tag=tag, sample=sample)
                if shown:
                    query = dict(urllib.parse.parse_qsl(shown[-1]["query"]))
                    png = pages.bytes_of("plugin/images/individualImage", **query)
                    samples.append([shown[-1]["step"], base64.b64encode(png).decode()])
            found.setdefault(run, {})[tag] = samples
    return found


def texts(pages):
    found = {}
    for run, tags in pages.of("plugin/text/tags").items():
        for tag in tags:
            shown = pages.of("plugin/text/text", run=run, tag=tag)
            found.setdefault(run, {})[tag] = [[each["step"], each["text"]] for each in shown]
    return found


def graph(pages):
    about = pages.of("plugin/graphs/info")
    return {
        run: pages.bytes_of("plugin/graphs/graph", run=run).decode()
        for run, of_run in about.items()
        if of_run["run_graph"]
    }


def hparams(pages):
    experiment = pages.of("plugin/hparams/experiment", request="{}")
    request = json.dumps(
        {
            "startIndex": 0,
            "sliceSize": 100,
            "allowedStatuses": [
                "STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"
            ],
            "colParams": [{"metric": each["name"]} for each in experiment.get("metricInfos", [])],
        }
    )
    groups = pages.of("plugin/hparams/session_groups", request=request)
    return {"experiment": experiment, "groups": groups}


def projector(pages):
    found = {}
    for run in pages.of("plugin/projector/runs"):
        info = pages.of("plugin/projector/info", run=run)
        name = info["embeddings"][0]["tensorName"]
        points = pages.bytes_of("plugin/projector/tensor", run=run, name=name)
        labels = pages.bytes_of("plugin/projector/metadata", run=run, name=name)
        found[run] = {
            "shape": info["embeddings"][0]["tensorShape"],
            "bytes": len(points),
            "labels": labels.decode().splitlines(),
        }
    return found


def newest(found, run):
    """Returns the newest step shown in the runs called `run`."""
    return max(
        (
            points[-1][0]
            for name, tags in found.items()
            if name.split("/")[-1] == run
            for points in tags.values()
            if points
        ),
        default=-1,
    )


def everything(pages):
    return {
        "scalars": scalars(pages),
        "histograms": histograms(pages),
        "images": images(pages),
        "texts": texts(pages),
        "graph": graph(pages),
        "hparams": hparams(pages),
        "projector": projector(pages),
    }


def is_complete(pages, step):
    """Returns whether the last event of `chief` has histograms and that of `eval` shows the end of the run."""
    sessions = [
        session
        for group in hparams(pages)["groups"].get("sessionGroups", [])
        for session in group["sessions"]
    ]
    return (
        newest(histograms(pages), "chief") >= step
        and newest(scalars(pages), "eval") >= step
        and any(session["status"] == "STATUS_SUCCESS" for session in sessions)
    )


def main():
    logging.disable(logging.WARNING)
    loader, directory, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
    board = program.TensorBoard(plugins=default.get_plugins())
    board.configure(
        argv=[
            "tensorboard", "--logdir", directory, "--host", "127.0.0.1", "--port", "0",
            "--reload_interval", "1", "--load_fast", "true" if loader == "fast" else "false",
        ]
    )
    pages = Pages(board.launch())
    deadline = time.monotonic() + 60
    while not is_complete(pages, step) and time.monotonic() < deadline:
        time.sleep(0.1)
    with open(sys.argv[4], "w", encoding="utf-8") as file:
        json.dump(everything(pages), file)
    # The server's threads do not exit on their own. The loader in Rust exits with this process.
    os._exit(0)


if __name__ == "__main__":
    main()
