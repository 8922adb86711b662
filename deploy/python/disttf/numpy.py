"""disttf.numpy: gradients computed with NumPy.

    run = disttf.numpy.join({"w": w, "b": b}, rows=len(x))
    for step in run:                         # w and b have the run's values now
        rows = step.rows()
        step.push({"w": ..., "b": ...}, loss=...)
"""
from typing import Any, Dict, Iterable, List, Mapping, Optional

import numpy as np

from . import _run
from ._names import Options
from ._protocol import Variable

__all__ = ["Run", "Step", "join"]


def join(arrays: Mapping[str, "np.ndarray[Any, Any]"], data: Optional[str] = None, rows: Optional[int] = None, *,
         no_decay: Iterable[str] = (), rates: Optional[Mapping[str, float]] = None,
         statistics: Optional[Mapping[str, float]] = None) -> "Run":
    """Joins the run with these variables: float32 arrays with their initial values, which each step fills with the
    run's values.

    data: a word for the data set, which all programs of the run must share. rows: its number of rows.
    no_decay: patterns of names without weight decay. rates: pattern of names to factor of the learning rate.
    statistics: name to momentum, of running statistics: their "gradient" is the batch's own value.
    """
    return Run(arrays, data, rows, Options(no_decay, rates, statistics))


class Step(_run.Step):
    run: "Run"

    @property
    def gradients(self) -> Dict[str, "np.ndarray[Any, Any]"]:
        """Views of the gradient's memory. Write all of them, or give the gradients to push()."""
        return self.run._gradients

    def rows(self, count: Optional[int] = None) -> "np.ndarray[Any, Any]":
        """The batch's row numbers, of a data set of `count` rows."""
        return np.array(self.row_numbers(count), dtype=np.int64)

    def generator(self) -> "np.random.Generator":
        """A random generator that is a function of the run's seed, the step and the slot alone."""
        return np.random.default_rng(self.seed)

    def push(self, gradients: Optional[Mapping[str, Any]] = None, *, loss: Any, **numbers: Any) -> None:
        """Hands the gradient over: the mean over the batch's rows. `numbers`: up to 32 more, to be shown."""
        if gradients is not None:
            if gradients.keys() != self.gradients.keys():
                raise ValueError("push() needs the gradients of %s (got %s)" % (
                    ", ".join(self.gradients), ", ".join(gradients)))
            for name, gradient in gradients.items():
                if np.shape(gradient) != self.gradients[name].shape:
                    raise ValueError("the gradient of %s has shape %s, the variable %s" % (
                        name, np.shape(gradient), self.gradients[name].shape))
                self.gradients[name][...] = gradient
        self._push(loss, numbers)


class Run(_run.BaseRun):
    step_type = Step

    def __init__(self, arrays: Mapping[str, Any], data: Optional[str], rows: Optional[int], options: Options) -> None:
        super().__init__("numpy " + np.__version__, data, rows)
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype != np.float32 or not array.flags.writeable:
                raise TypeError("%s must be a writable float32 array" % name)
        options.check(arrays)
        self.variables = dict(arrays)
        self._options = options
        self._parameters: Dict[str, Any] = {}
        self._gradients: Dict[str, Any] = {}

    def _variables(self) -> List[Variable]:
        return [Variable(name, array.shape, self._options.decays(name), self._options.rate_factor(name),
                         self._options.momentum(name)) for name, array in self.variables.items()]

    def _fingerprint(self) -> Dict[str, str]:
        return {"framework": "numpy " + np.__version__, "processor": processor()}

    def _map(self) -> None:
        for memory, views in ((self._client.parameters, self._parameters), (self._client.gradient, self._gradients)):
            flat = np.frombuffer(memory, np.float32)
            for offset, (name, array) in zip(self._client.offsets, self.variables.items()):
                views[name] = flat[offset:offset + array.size].reshape(array.shape)

    def _write_initial(self) -> None:
        for name, array in self.variables.items():
            self._gradients[name][...] = array

    def _read_parameters(self) -> None:
        for name, array in self.variables.items():
            array[...] = self._parameters[name]

    def _prepare(self, step: Step) -> None:
        np.random.seed(step.seed & 0xFFFFFFFF)


def processor() -> str:
    """The processor's name, on which the bits of matrix products depend."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"
