"""Runs a job of DC/OS' TensorFlow package: python3 -m disttf.job --job_url URL --job_name NAME

Imports the module NAME and calls its main(server, log_dir, context), as that package does. Where TensorFlow's server was,
`server` is this module's Server: run = server.join(model).
"""
import argparse
import importlib
import json
import os
import sys
import tempfile
import types
import urllib.parse
import urllib.request
import zipfile
from typing import Any, Dict, List, Optional

__all__ = ["Server", "main"]


class Server:
    """What a job gets: its task, and join()."""

    def __init__(self) -> None:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config.get("task", {})
        self.server_def = types.SimpleNamespace(job_name=str(task.get("type", "worker")),
                                                task_index=int(task.get("index", 0)), cluster=config.get("cluster", {}))

    def join(self, model: Any, *arguments: Any, **options: Any) -> Any:
        """disttf.torch.join(), disttf.tensorflow.join(), disttf.numpy.join() or disttf.jax.join(), by the model's type."""
        return importlib.import_module("disttf." + _framework(model)).join(model, *arguments, **options)


def _framework(model: Any) -> str:
    modules = {each.__module__.split(".")[0] for each in type(model).__mro__}
    if "torch" in modules:
        return "torch"
    leaves = list(model.values()) if isinstance(model, dict) else list(model) if isinstance(model, (list, tuple)) else []
    if modules & {"keras", "tensorflow"} or any(type(leaf).__module__.split(".")[0] in ("keras", "tensorflow")
                                                for leaf in leaves):
        return "tensorflow"
    if isinstance(model, dict) and leaves and all(type(leaf).__module__ == "numpy" for leaf in leaves):
        return "numpy"
    return "jax"


def _fetch(url: str, folder: str) -> None:
    """Downloads the file and, if it is a ZIP, unpacks it to the folder."""
    kind = urllib.parse.urlsplit(url).scheme
    if kind not in ("http", "https", "file"):
        raise SystemExit("disttf.job: --job_url must begin with http://, https:// or file:// (got %s)" % url)
    path = os.path.join(folder, os.path.basename(urllib.parse.urlsplit(url).path) or "job.py")
    try:
        urllib.request.urlretrieve(url, path)
    except OSError as error:
        raise SystemExit("disttf.job: --job_url %s: %s" % (url, error)) from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)


def _options(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m disttf.job", description=(__doc__ or "").split("\n")[0])
    for name, about in (("job_url", "a Python file or a ZIP with one, to be downloaded; empty: it is here already"),
                        ("job_path", "folder of the module, relative to where the ZIP was unpacked"),
                        ("job_name", "the module: its file without .py"),
                        ("job_context", "a JSON object, which main() receives as context"),
                        ("log_dir", "main() receives it as log_dir")):
        parser.add_argument("--" + name, default=os.environ.get(name.upper(), ""), metavar="TEXT",
                            help="%s (default: the variable %s)" % (about, name.upper()))
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> Any:
    options = _options(arguments)
    if not options.job_name:
        raise SystemExit("disttf.job: --job_name must be a module's name (got nothing)")
    try:
        context: Dict[str, Any] = json.loads(options.job_context or "{}")
        if not isinstance(context, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise SystemExit("disttf.job: --job_context must be a JSON object: %s" % error) from None
    folder = os.getcwd()
    if options.job_url:
        folder = tempfile.mkdtemp(prefix="disttf-job-")
        _fetch(options.job_url, folder)
    sys.path.insert(0, os.path.join(folder, options.job_path.lstrip("/")))
    job = importlib.import_module(options.job_name)
    if not callable(getattr(job, "main", None)):
        raise SystemExit("disttf.job: %s has no main(server, log_dir, context)" % options.job_name)
    return job.main(Server(), options.log_dir, context)


if __name__ == "__main__":
    main()
