"""Compares a model's outputs in another runtime with those of disttf predict.

Usage: check_exports.py onnx FILE IMAGES LABELS ANSWERS RESULT
       check_exports.py saved_model DIRECTORY IMAGES LABELS ANSWERS RESULT
       check_exports.py safetensors FILE NPZ RESULT

IMAGES and LABELS: IDX files, which may be gzipped. ANSWERS: the output of `disttf predict --json` for
these images. RESULT: the file to which one JSON object is written.
"""

import gzip
import json
import struct
import sys

import numpy as np


def idx(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def answers(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return np.array([line["probabilities"] for line in lines if "probabilities" in line])


class Onnx:
    """The ONNX model. Channels precede height and width."""

    def __init__(self, path):
        import onnx
        import onnxruntime

        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        self.ir_version = model.ir_version
        self.opset = model.opset_import[0].version
        self.facts = {entry.key: entry.value for entry in model.metadata_props}
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def ask(self, images):
        return self.session.run(None, {"images": images[:, None].astype(np.float32)})[0]

    def about(self):
        return {"ir_version": self.ir_version, "opset": self.opset, "facts": self.facts}


class SavedModel:
    """The SavedModel. Channels are last."""

    def __init__(self, path):
        import tensorflow

        self.tensorflow = tensorflow
        self.loaded = tensorflow.saved_model.load(path)
        self.signature = self.loaded.signatures["serving_default"]

    def ask(self, images):
        pixels = self.tensorflow.constant(images[..., None].astype(np.float32))
        return self.signature(images=pixels)["probabilities"].numpy()

    def about(self):
        return {"version": self.tensorflow.__version__}


def compare(model, images, labels, expected):
    images, labels = idx(images), idx(labels)
    expected = answers(expected)
    found = np.concatenate([model.ask(images[i : i + 1000]) for i in range(0, len(images), 1000)])
    # The batch size is free.
    alone = np.concatenate([model.ask(images[:1]), model.ask(images[1:8])])
    judged = found.argmax(axis=1)
    return {
        "rows": len(images),
        "difference": float(np.abs(found - expected).max()),
        "difference_of_few": float(np.abs(alone - expected[:8]).max()),
        "other_labels": int((judged != expected.argmax(axis=1)).sum()),
        "correct": int((judged == labels).sum()),
        **model.about(),
    }


def compare_files(weights, npz):
    """Compares the two files of variables, read by their own libraries."""
    from safetensors import safe_open

    with np.load(npz) as archive, safe_open(weights, framework="numpy") as file:
        facts = json.loads(archive["disttf.json"])
        same = all(np.array_equal(file.get_tensor(name), archive[name]) for name in file.keys())
        return {
            "names": sorted(file.keys()),
            "same": same and facts == file.metadata(),
            "shapes": {name: list(archive[name].shape) for name in file.keys()},
        }


def main(kind, *arguments):
    if kind == "safetensors":
        result = compare_files(*arguments[:-1])
    else:
        model = {"onnx": Onnx, "saved_model": SavedModel}[kind](arguments[0])
        result = compare(model, *arguments[1:-1])
    with open(arguments[-1], "w", encoding="utf-8") as file:
        json.dump(result, file)


main(*sys.argv[1:])
