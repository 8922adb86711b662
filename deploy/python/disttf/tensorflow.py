"""disttf.tensorflow: gradients computed with TensorFlow 2.

    run = disttf.tensorflow.join(model)               # a Keras model, or a list of tf.Variable
    for step in run:                                  # the variables have the run's values now
        with tf.GradientTape() as tape:
            loss = ...
        step.push(tape.gradient(loss, run.trained), loss=loss)

With Keras' fit(): `model.compile(disttf.tensorflow.Optimizer(model), loss)`.
"""
import random
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

import numpy as np
import tensorflow as tf

from . import _run
from ._names import Options
from ._protocol import Variable
from .numpy import processor

__all__ = ["Optimizer", "Run", "Step", "join"]


def join(model: Any, data: Optional[str] = None, rows: Optional[int] = None, *, no_decay: Iterable[str] = (),
         rates: Optional[Mapping[str, float]] = None) -> "Run":
    """Joins the run with the variables of a Keras model, or with these variables. The initial values are those of the
    chief's program.

    data: a word for the data set, which all programs of the run must share. rows: its number of rows.
    no_decay: patterns of names without weight decay. rates: pattern of names to factor of the learning rate.
    """
    return Run(model, data, rows, Options(no_decay, rates))


class Step(_run.Step):
    """One batch: number, slot, seed."""

    run: "Run"

    def rows(self, count: Optional[int] = None) -> "np.ndarray[Any, Any]":
        """The batch's row numbers, of a data set of `count` rows."""
        return np.array(self.row_numbers(count), dtype=np.int64)

    def push(self, gradients: Sequence[Any], *, loss: Any, **numbers: Any) -> None:
        """Hands over the gradients of run.trained, in order: the means over the batch's rows. None: not used, 0.
        `numbers`: up to 32 more, to be shown."""
        self.run._write_gradient([gradient.numpy() if hasattr(gradient, "numpy") else gradient for gradient in gradients])
        self._push(loss, numbers)


class Run(_run.BaseRun):
    step_type = Step

    def __init__(self, model: Any, data: Optional[str], rows: Optional[int], options: Options) -> None:
        super().__init__("tensorflow " + tf.__version__, data, rows)
        self._options = options
        self._model = model if hasattr(model, "trainable_variables") else None
        if self._model is not None:
            if not model.variables:
                raise ValueError("the model has no variables yet: build it, or call it once, before join()")
            self.trained = list(model.trainable_variables)
            others = list(model.non_trainable_variables)
        else:
            self.trained, others = list(model), []
        layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else []
        self._norms = [(layer, layer.momentum) for layer in layers
                       if hasattr(layer, "moving_mean") and hasattr(layer, "momentum")]
        momenta = {id(variable): momentum for layer, momentum in self._norms
                   for variable in (layer.moving_mean, layer.moving_variance)}
        self.statistics = [variable for variable in others if id(variable) in momenta]
        self._momenta = [momenta[id(variable)] for variable in self.statistics]
        self._frozen = [variable for variable in others
                        if id(variable) not in momenta and tf.as_dtype(variable.dtype).is_floating]
        self._seeds = [variable for variable in others
                       if "seed_generator_state" in variable.name and tuple(variable.shape) == (2,)]
        self.variables = self.trained + self.statistics + self._frozen
        for variable in self.variables:
            if tf.as_dtype(variable.dtype) != tf.float32:
                raise TypeError("%s is %s: a run's variables are float32" % (variable.name, variable.dtype))
        self._names = _names(self.variables)
        options.check(self._names)
        self._parameters: List[Any] = []
        self._gradients: List[Any] = []

    def _variables(self) -> List[Variable]:
        for layer, _ in self._norms:
            layer.momentum = 0.0  # so that the variables hold the batch's own values
        found = []
        for at, (name, variable) in enumerate(zip(self._names, self.variables)):
            shape, statistic = tuple(variable.shape), at - len(self.trained)
            if statistic < 0:
                found.append(Variable(name, shape, self._options.decays(name), self._options.rate_factor(name)))
            elif statistic < len(self.statistics):
                found.append(Variable(name, shape, False, 1.0, float(self._momenta[statistic])))
            else:
                found.append(Variable(name, shape, False, 0.0))
        return found

    def _fingerprint(self) -> Dict[str, str]:
        found = {"framework": "tensorflow " + tf.__version__, "processor": processor(),
                 "threads": "%d %d" % (tf.config.threading.get_intra_op_parallelism_threads(),
                                       tf.config.threading.get_inter_op_parallelism_threads())}
        for device in tf.config.list_physical_devices("GPU")[:1]:
            found["gpu"] = str(tf.config.experimental.get_device_details(device).get("device_name", device.name))
        return found

    def _map(self) -> None:
        for memory, views in ((self._client.parameters, self._parameters), (self._client.gradient, self._gradients)):
            flat = np.frombuffer(memory, np.float32)
            for offset, variable in zip(self._client.offsets, self.variables):
                shape = tuple(variable.shape)
                size = int(np.prod(shape, dtype=np.int64))
                views.append(flat[offset:offset + size].reshape(shape))

    def _write_initial(self) -> None:
        for view, variable in zip(self._gradients, self.variables):
            np.copyto(view, variable.numpy())

    def _read_parameters(self) -> None:
        for view, variable in zip(self._parameters, self.variables):
            variable.assign(view)

    def _prepare(self, step: Any) -> None:
        tf.random.set_seed(step.seed & 0x7FFFFFFFFFFFFFFF)
        np.random.seed(step.seed & 0xFFFFFFFF)
        random.seed(step.seed)
        for at, variable in enumerate(self._seeds):  # the generators of Keras' layers
            variable.assign(np.array([(step.seed + at) & 0xFFFFFFFF, step.seed >> 32]).astype(variable.dtype))

    def _write_gradient(self, gradients: Sequence[Any], statistics: Optional[Sequence[Any]] = None) -> None:
        if len(gradients) != len(self.trained):
            raise ValueError("push() needs %d gradients, as run.trained has variables (got %d)" % (
                len(self.trained), len(gradients)))
        if self.trained and all(gradient is None for gradient in gradients):
            raise ValueError("step %d: no variable of run.trained has a gradient: the loss must be computed of them within "
                             "the GradientTape" % self.number)
        if statistics is None:
            statistics = [variable.numpy() for variable in self.statistics]
        values: List[Any] = [*gradients, *statistics, *(None for _ in self._frozen)]
        for name, view, value in zip(self._names, self._gradients, values):
            if value is None:
                view[...] = 0
            elif isinstance(value, tf.IndexedSlices):
                raise ValueError("the gradient of %s is sparse: disttf takes dense gradients only" % name)
            elif np.shape(value) != view.shape:
                raise ValueError("the gradient of %s has shape %s, the variable %s" % (name, np.shape(value), view.shape))
            else:
                np.copyto(view, value)

    def _end(self) -> None:
        for layer, momentum in self._norms:
            layer.momentum = momentum


class Optimizer(tf.keras.optimizers.Optimizer):  # type: ignore[misc]
    """A Keras optimizer for model.compile(): fit() computes gradients, the run's optimizer on the parameter servers
    applies them. fit() ends with the run; give it more epochs than the run can take."""

    def __init__(self, model: Any, data: Optional[str] = None, rows: Optional[int] = None, *,
                 evaluate: Optional[Callable[[], Mapping[str, Any]]] = None, no_decay: Iterable[str] = (),
                 rates: Optional[Mapping[str, float]] = None) -> None:
        super().__init__(learning_rate=0.0, name="disttf")
        self.run = join(model, data, rows, no_decay=no_decay, rates=rates)
        if evaluate is not None:
            self.run.evaluate(evaluate)
        self._model = model
        self._loss: Any = None
        self.current = self.run.next_step()

    def scale_loss(self, loss: Any) -> Any:
        self._loss = loss  # Keras calls this once a step, in the function that also calls apply()
        return loss

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Nothing: apply() does it all."""

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        if not self.built:
            self.build(self.run.trained)
        if all(gradient is None for gradient in grads):
            raise ValueError("no variable of the model has a gradient: the loss does not depend on them")
        gradients = [tf.zeros(variable.shape) if gradient is None else tf.convert_to_tensor(gradient)
                     for gradient, variable in zip(grads, self.run.trained)]
        inputs = gradients + [tf.convert_to_tensor(variable) for variable in self.run.statistics]
        loss = tf.constant(0.0) if self._loss is None else tf.cast(tf.reduce_mean(self._loss), tf.float32)
        # The new values are outputs, so that a graph reads and writes the variables in the right order.
        values = tf.py_function(self._exchange, [loss, *inputs], [tf.float32] * len(self.run.variables))
        for variable, value in zip(self.run.variables, values):
            variable.assign(tf.ensure_shape(value, variable.shape))
        self.iterations.assign_add(1)

    def _exchange(self, loss: Any, *inputs: Any) -> List[Any]:
        count = len(self.run.trained)
        if self.current is not None:
            arrays = [each.numpy() for each in inputs]
            self.run._write_gradient(arrays[:count], arrays[count:])
            self.current._push(float(loss), {})
            self.current = self.run.next_step()
        if self.current is None:
            self._model.stop_training = True
        return [tf.constant(view) for view in self.run._parameters]


def _names(variables: Sequence[Any]) -> List[str]:
    """Keras' paths or the variables' names, made unique by a number."""
    found: List[str] = []
    for variable in variables:
        stem = str(getattr(variable, "path", variable.name)).split(":")[0].replace(" ", "_")
        name, number = stem, 0
        while name in found:
            number += 1
            name = "%s_%d" % (stem, number)
        found.append(name)
    return found
