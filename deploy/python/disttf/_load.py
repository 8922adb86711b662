"""Reads checkpoints (docs/checkpoint_format.md) and safetensors files with NumPy alone."""
import hashlib
import json
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

_CHECKPOINT = re.compile(r"checkpoint-(\d{8,})(?:-(\d+))?\Z")
_INDEX = "model.safetensors.index.json"
_PART = re.compile(r"(.*):(\d+)-(\d+)\Z")
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U8": "<u1",
          "BOOL": "?"}

Arrays = Dict[str, "np.ndarray[Any, Any]"]


def load(path: Union[str, "os.PathLike[str]"]) -> Arrays:
    """Returns the variables by name: of a --train_dir's newest checkpoint, of a checkpoint's folder, or of a
    .safetensors file. Of a run with --ema these are the averages, which are its result.

    Raises FileNotFoundError, and ValueError if a file is damaged.
    """
    return load_with_step(path)[0]


def load_with_step(path: Union[str, "os.PathLike[str]"]) -> Tuple[Arrays, Optional[int]]:
    """The same, and the number of updates that produced the variables. None: disttf did not write the file."""
    place = os.fspath(path)
    if not os.path.isdir(place):
        metadata: Dict[str, str] = {}
        arrays = dict(_tensors(place, metadata))
        return arrays, int(metadata["step"]) if "disttf_format" in metadata else None
    if not os.path.exists(os.path.join(place, _INDEX)):
        place = _newest(place)
    with open(os.path.join(place, _INDEX), "rb") as file:
        index = json.loads(file.read().decode())
    if "disttf" not in index:
        return {name: array for each in sorted(set(index["weight_map"].values()))
                for name, array in _tensors(os.path.join(place, each))}, None
    return _assembled(place, index["disttf"]), index["disttf"]["step"]


def _newest(folder: str) -> str:
    found: List[Tuple[int, int, str]] = []
    for name in os.listdir(folder):
        match = _CHECKPOINT.match(name)
        if match and os.path.exists(os.path.join(folder, name, _INDEX)):
            found.append((int(match.group(1)), int(match.group(2) or 1), name))
    if not found:
        raise FileNotFoundError("there is no checkpoint in %s" % folder)
    return os.path.join(folder, max(found)[2])


def _tensors(path: str, metadata: Optional[Dict[str, str]] = None) -> Iterator[Tuple[str, "np.ndarray[Any, Any]"]]:
    """The tensors of one safetensors file, whose metadata are added to `metadata`."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError("%s is no safetensors file" % path)
        header = json.loads(file.read(length).decode())
    found = header.pop("__metadata__", {})
    if metadata is not None:
        metadata.update(found)
    if not header:
        return
    data = np.memmap(path, np.uint8, "r", 8 + length) if size > 8 + length else np.empty(0, np.uint8)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in _TYPES:
            raise ValueError("%s: %s is of type %s, which NumPy does not have" % (path, name, entry["dtype"]))
        kind = np.dtype(_TYPES[entry["dtype"]])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if not 0 <= begin <= end <= len(data) or end - begin != count * kind.itemsize:
            raise ValueError("%s: %s has the wrong size" % (path, name))
        yield name, np.frombuffer(data[begin:end].tobytes(), kind).reshape(entry["shape"]).copy()


def _assembled(folder: str, index: Dict[str, Any]) -> Arrays:
    """The variables of a checkpoint, whose files each hold a range of the vector."""
    suffix = "/average" if "average" in index["optimizer"] else ""
    arrays = {each["name"]: np.zeros(each["shape"], np.float32) for each in index["variables"]}
    missing = {name: array.size for name, array in arrays.items()}
    wanted = {name + suffix: name for name in arrays}
    for file in index["files"]:
        for tensor, array in _tensors(os.path.join(folder, file["name"])):
            match = None if tensor in wanted else _PART.match(tensor)
            name = wanted.get(match.group(1) if match else tensor)
            if name is None:
                continue
            expected = index.get("sha256", {}).get(tensor)
            if expected is not None and hashlib.sha256(array.tobytes()).hexdigest() != expected:
                raise ValueError("%s: %s is damaged: its SHA-256 differs" % (os.path.join(folder, file["name"]), tensor))
            begin = int(match.group(2)) if match else 0
            arrays[name].reshape(-1)[begin:begin + array.size] = array.reshape(-1)
            missing[name] -= array.size
    for name, count in missing.items():
        if count:
            raise ValueError("%s: %d numbers of %s are missing" % (folder, count, name))
    return arrays
