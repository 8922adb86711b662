"""Gradients of disttf held against those that PyTorch has for the same weights and the same batch.

    python3 torch_gradient.py PROGRAM

PROGRAM is math_gradient_files, which writes models and their gradients (gradient_files.cc). Each
model is built again of PyTorch's functions, in double, and differentiated by torch.autograd. Exit
code 1 where a gradient is further away than the rounding of floats explains; 77 and a sentence
where PyTorch is not installed.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: this python3 cannot import PyTorch: {error}")
    sys.exit(77)

# Of the largest component of the same variable. One float is rounded by 6e-8, what many of them
# lead to by some 1e-6; a wrong formula is a matter of percents.
TOLERANCE = 5e-5
# Where a variable's gradient is next to nothing (of a bias before batch norm: nothing), of this
# share of the model's largest component instead.
LEAST_SHARE = 0.1


class Files:
    """What was written of a model."""

    def __init__(self, description):
        self.base = description.with_suffix("")
        self.says = json.loads(description.read_text())

    def array(self, name):
        return torch.from_numpy(numpy.load(f"{self.base}.{name}.npy"))

    def variables(self, name):
        """The parts of a flat vector, each in its variable's shape, in double."""
        flat = self.array(name).double()
        parts = []
        for each in self.says["layout"]:
            begin, shape = each["offset"], each["shape"]
            parts.append(flat[begin:begin + math.prod(shape)].reshape(shape))
        return parts

    def batch(self):
        """[rows, channels, height, width]; in the files channels are last."""
        if self.says["numbers"]:
            means, scales = self.array("means").double(), self.array("scales").double()
            values = (self.array("numbers").double().reshape(-1, len(means)) - means) * scales
        else:
            values = self.array("images").double() / 255
        return values.reshape(self.says["rows"], *self.says["input"]).permute(0, 3, 1, 2)


def flatten(images):
    """[rows, numbers], in the order in which disttf has them: row, column, channel."""
    return images.permute(0, 2, 3, 1).reshape(len(images), -1)


def dense(layer, inputs, weights, bias):
    return (flatten(inputs) @ weights + bias)[:, :, None, None]


def padding_of(length, kernel, stride):
    """TensorFlow's "same": an output of ceil(length / stride), the smaller half first."""
    whole = max((math.ceil(length / stride) - 1) * stride + kernel - length, 0)
    return [whole // 2, whole - whole // 2]


def conv2d(layer, inputs, weights, bias):
    stride = int(layer.get("stride", 1))
    if layer.get("padding", "same") == "same":
        height, width = inputs.shape[2:]
        kernel = int(layer["kernel"])
        inputs = functional.pad(
            inputs, padding_of(width, kernel, stride) + padding_of(height, kernel, stride))
    return functional.conv2d(inputs, weights.permute(3, 2, 0, 1), bias, stride)


def batch_norm(layer, inputs, gamma, beta, statistics):
    """PyTorch's function leaves in `statistics` the batch's mean and variance: momentum 1."""
    return functional.batch_norm(inputs, *statistics, gamma, beta, training=True, momentum=1.0,
                                 eps=float(numpy.float32(layer.get("epsilon", 1e-5))))


def pool(function):
    return lambda layer, inputs: function(
        inputs, int(layer["size"]), int(layer.get("stride", 0)) or None)


# By type: how many variables are trained, and the function of the layer, its input and those.
LAYERS = {
    "dense": (2, dense),
    "conv2d": (2, conv2d),
    "max_pool": (0, pool(functional.max_pool2d)),
    "average_pool": (0, pool(functional.avg_pool2d)),
    "relu": (0, lambda layer, inputs: inputs.relu()),
    "tanh": (0, lambda layer, inputs: inputs.tanh()),
    "sigmoid": (0, lambda layer, inputs: inputs.sigmoid()),
    "flatten": (0, lambda layer, inputs: flatten(inputs)[:, :, None, None]),
}


def outputs_of(files, variables):
    """[rows, outputs]. Writes into the running statistics among the variables the batch's."""
    left = iter(variables)
    values = files.batch()
    for layer in files.says["layers"]:
        if layer["type"] == "batch_norm":
            gamma, beta, *statistics = (next(left) for _ in range(4))
            values = batch_norm(layer, values, gamma, beta, statistics)
            continue
        count, function = LAYERS[layer["type"]]
        values = function(layer, values, *(next(left) for _ in range(count)))
    return flatten(values)


def loss_of(files, outputs):
    says = files.says
    smoothing = float(numpy.float32(says["label_smoothing"]))
    if says["loss_type"] == "mean_squared_error":
        targets = (files.array("targets").double() - says["target_mean"]) * says["target_scale"]
        return functional.mse_loss(outputs[:, 0], targets)
    labels = files.array("labels").long()
    if says["loss_type"] == "softmax_cross_entropy":
        return functional.cross_entropy(outputs, labels, label_smoothing=smoothing)
    targets = functional.one_hot(labels, outputs.shape[1]).double()
    targets = (1 - smoothing) * targets + smoothing / 2
    return functional.binary_cross_entropy_with_logits(outputs, targets)


def differences(files):
    """(name of the variable or "loss", largest difference relative to what is expected)"""
    variables = files.variables("parameters")
    layout = files.says["layout"]
    trained = [variable.requires_grad_() for variable, each in zip(variables, layout)
               if each["is_trained"]]
    loss = loss_of(files, outputs_of(files, variables))
    gradients = iter(torch.autograd.grad(loss, trained))
    expected = [next(gradients) if each["is_trained"] else variable
                for variable, each in zip(variables, layout)]
    least = LEAST_SHARE * max(
        one.abs().max() for one, each in zip(expected, layout) if each["is_trained"])
    yield "loss", abs(files.says["loss"] - loss.item()) / loss.item()
    for each, exact, ours in zip(layout, expected, files.variables("gradient")):
        size = exact.abs().max()
        if each["is_trained"]:
            size = max(size, least)
        yield each["name"], ((ours - exact).abs().max() / size).item()


def main():
    torch.set_num_threads(1)
    far = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        descriptions = sorted(pathlib.Path(folder).glob("*.json"))
        for description in descriptions:
            found = list(differences(Files(description)))
            name, largest = max(found, key=lambda each: (math.isnan(each[1]), each[1]))
            print(f"{description.stem}: largest relative difference {largest:.1e}, of {name}")
            far += not largest <= TOLERANCE
    print(f"PyTorch {torch.__version__}: {far} of {len(descriptions)} models differ by more than "
          f"{TOLERANCE:g}")
    return 0 if descriptions and not far else 1


if __name__ == "__main__":
    sys.exit(main())
