"""disttf.jax: gradients computed with JAX.

    run = disttf.jax.join(params, rows=len(x))       # params: a tree of float32 arrays, with their initial values
    for step in run:
        rows = step.rows()
        loss, gradients = value_and_grad(step.params, x[rows], y[rows])
        step.push(gradients, loss=loss)
    params = run.params                               # the result
"""
from typing import Any, Dict, Iterable, List, Mapping, Optional

import jax
import jax.numpy as jnp
import numpy as np

from . import _run
from ._names import Options
from ._protocol import Message, Variable
from .numpy import processor

__all__ = ["Run", "Step", "join"]


def join(params: Any, data: Optional[str] = None, rows: Optional[int] = None, *, no_decay: Iterable[str] = (),
         rates: Optional[Mapping[str, float]] = None, statistics: Optional[Mapping[str, float]] = None) -> "Run":
    """Joins the run with the leaves of the tree `params`, which keep their names: {"dense": {"w": ...}} is dense.w.

    data: a word for the data set, which all programs of the run must share. rows: its number of rows.
    no_decay: patterns of names without weight decay. rates: pattern of names to factor of the learning rate.
    statistics: name to momentum, of running statistics: their "gradient" is the batch's own value.
    """
    return Run(params, data, rows, Options(no_decay, rates, statistics))


class Step(_run.Step):
    """One batch. params: the tree with the run's values."""

    run: "Run"

    def __init__(self, run: "Run", message: Message) -> None:
        super().__init__(run, message)
        self.params: Any = None

    @property
    def key(self) -> Any:
        """A key of random numbers that is a function of the run's seed, the step and the slot alone."""
        return jnp.array([self.seed >> 32, self.seed & 0xFFFFFFFF], dtype=jnp.uint32)

    def rows(self, count: Optional[int] = None) -> "np.ndarray[Any, Any]":
        """The batch's row numbers, of a data set of `count` rows."""
        return np.array(self.row_numbers(count), dtype=np.int64)

    def push(self, gradients: Any, *, loss: Any, **numbers: Any) -> None:
        """Hands over a tree like `params`: the mean gradient over the batch's rows. `numbers`: up to 32 more, to be
        shown."""
        leaves, tree = jax.tree_util.tree_flatten(gradients)
        if tree != self.run._tree:
            raise ValueError("push() needs a tree like params: %s (got %s)" % (self.run._tree, tree))
        for view, leaf, variable in zip(self.run._gradients, leaves, self.run._layout):
            if np.shape(leaf) != view.shape:
                raise ValueError("the gradient of %s has shape %s, the variable %s" % (
                    variable.name, np.shape(leaf), view.shape))
            np.copyto(view, np.asarray(leaf))
        jax.block_until_ready(self.params)  # read before the memory changes
        self._push(loss, numbers)


class Run(_run.BaseRun):
    step_type = Step

    def __init__(self, params: Any, data: Optional[str], rows: Optional[int], options: Options) -> None:
        super().__init__("jax " + jax.__version__, data, rows)
        self.params = params
        self._options = options
        self._tree: Any
        paths, self._tree = jax.tree_util.tree_flatten_with_path(params)
        for path, leaf in paths:
            if getattr(leaf, "dtype", None) != np.float32:
                raise TypeError("%s must be a float32 array" % _name(path))
        self._names = [_name(path) for path, _ in paths]
        options.check(self._names)
        self._layout: List[Variable] = []
        self._parameters: List[Any] = []
        self._gradients: List[Any] = []

    def _variables(self) -> List[Variable]:
        self._layout = [Variable(name, tuple(leaf.shape), self._options.decays(name), self._options.rate_factor(name),
                                 self._options.momentum(name)) for name, leaf in
                        zip(self._names, jax.tree_util.tree_leaves(self.params))]
        return self._layout

    def _fingerprint(self) -> Dict[str, str]:
        device = jax.devices()[0]
        found = {"framework": "jax " + jax.__version__, "processor": processor(),
                 "precision": str(getattr(jax.config, "jax_default_matmul_precision", None))}
        if device.platform != "cpu":
            found["gpu"] = device.device_kind
        return found

    def _map(self) -> None:
        for memory, views in ((self._client.parameters, self._parameters), (self._client.gradient, self._gradients)):
            flat = np.frombuffer(memory, np.float32)
            views.extend(flat[offset:offset + variable.size].reshape(variable.shape)
                         for offset, variable in zip(self._client.offsets, self._layout))

    def _write_initial(self) -> None:
        for view, leaf in zip(self._gradients, jax.tree_util.tree_leaves(self.params)):
            np.copyto(view, np.asarray(leaf))

    def _read_parameters(self) -> None:
        # The only copy: without it an array would show whatever the memory holds later.
        leaves = jax.device_put(self._parameters, may_alias=False)
        self.params = jax.tree_util.tree_unflatten(self._tree, leaves)

    def _prepare(self, step: Step) -> None:
        step.params = self.params

    def _evaluate(self, function: Any) -> Mapping[str, Any]:
        found = _run.checked_numbers(function)
        jax.block_until_ready(self.params)
        return found

    def _end(self) -> None:
        jax.block_until_ready(self.params)


def _name(path: Any) -> str:
    """"dense.w" of the path to a leaf."""
    parts = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))) for key in path)
    return ".".join(str(part) for part in parts).replace(" ", "_") or "params"
