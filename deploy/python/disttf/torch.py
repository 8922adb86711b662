"""disttf.torch: gradients computed with PyTorch.

    run = disttf.torch.join(model)
    for step in run:                            # the model has the run's parameters now
        x, y = images[step.rows(n)], labels[...]
        loss = cross_entropy(model(x), y)
        loss.backward()
        step.push(loss=loss)

Without another loop: `opt = disttf.torch.Optimizer(model)` in place of the optimizer.
"""
import os
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import torch

from . import _run
from ._names import Options
from ._protocol import Message, Variable
from ._torch_sampler import Sampler
from ._torch_tensors import (NORM, check_variable, copy_all, indices_of, inner_model, mixed_seed, named_tensors, number_of,
                             pin_memory, record_losses, refuse_scaler, seed_all)

__all__ = ["LocalStep", "Optimizer", "Run", "RunOver", "Sampler", "Step", "join", "load"]


def join(model: torch.nn.Module, data: Optional[str] = None, rows: Optional[int] = None, *,
         no_decay: Iterable[str] = (), rates: Optional[Mapping[str, float]] = None, seed: bool = True,
         zero_copy: bool = False) -> "Run":
    """Joins the run with the model's parameters and buffers. The initial values are those of the chief's program.

    data: a word for the data set, which all programs of the run must share. rows: its number of rows.
    no_decay: patterns of parameters' names without weight decay. rates: pattern of names to factor of the learning rate.
    seed: set the generators of torch, NumPy and random to step.seed before each step.
    zero_copy: parameters and gradients lie in the task's memory. The program must then write neither parameters (that
    ends it with SIGSEGV) nor, between push() and the next step, gradients. Only on the CPU.
    """
    return Run(model, data, rows, Options(no_decay, rates), seed, zero_copy)


def load(path: Union[str, "os.PathLike[str]"], model: Optional[torch.nn.Module] = None) -> Dict[str, torch.Tensor]:
    """Returns a checkpoint's tensors, for model.load_state_dict(). With `model` also the entries that a checkpoint does
    not have: the other names of tied weights, num_batches_tracked of batch norm, which is the checkpoint's step, and the
    model's own values of other buffers that are not float32."""
    from ._load import load_with_step

    arrays, step = load_with_step(path)
    found = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if model is None:
        return found
    model = inner_model(model)
    names = {id(value): name for name, value in named_tensors(model)}
    counters = {id(module.num_batches_tracked) for module in model.modules() if isinstance(module, NORM)}
    for name, value in model.state_dict(keep_vars=True).items():
        if name in found or not isinstance(value, torch.Tensor):
            continue
        if step is not None and id(value) in counters:
            found[name] = torch.full_like(value, step)
        else:
            found[name] = found.get(names.get(id(value), ""), value.detach())
    return found


class RunOver(SystemExit):
    """Raised by Optimizer.step() at the end of the run; the program ends with 0 unless it catches this."""


class Step(_run.Step):
    """One batch: number, slot, seed."""

    run: "Run"

    def rows(self, count: Optional[int] = None) -> torch.Tensor:
        """The batch's row numbers, of a data set of `count` rows (default: join()'s rows)."""
        return indices_of(self.row_numbers(count))

    def push(self, *, loss: Any, **numbers: Any) -> None:
        """Hands the gradients over: the mean over the batch's rows, from one backward() or several. `numbers`: up to 32
        more, to be shown. The parameters' .grad is None after it."""
        self.run._write_gradient()
        self._push(number_of(loss), {name: number_of(value) for name, value in numbers.items()})


class LocalStep:
    """One of the steps of the user's own optimizer, of Run.local_steps()."""

    def __init__(self, step: Step, index: int, count: int) -> None:
        self.step, self.index, self._count = step, index, count
        self.number, self.slot = step.number, step.slot
        self.seed = step.seed if index == 0 else mixed_seed(step.seed, index)
        self.pushed: Optional[Dict[str, Any]] = None

    def rows(self, count: Optional[int] = None) -> torch.Tensor:
        """This local step's part of the batch's rows."""
        rows = self.step.row_numbers(count)
        if len(rows) < self._count:
            raise ValueError("--batch_size is %d, too few rows for %d local steps" % (len(rows), self._count))
        return indices_of(rows[self.index * len(rows) // self._count:(self.index + 1) * len(rows) // self._count])

    def push(self, *, loss: Any, **numbers: Any) -> None:
        self.pushed = dict(numbers, loss=loss)


class Run(_run.BaseRun):
    step_type = Step

    def __init__(self, model: torch.nn.Module, data: Optional[str], rows: Optional[int], options: Options, seed: bool,
                 zero_copy: bool) -> None:
        super().__init__("torch " + torch.__version__, data, rows)
        self.model = inner_model(model)
        self._options, self._seed, self._zero_copy = options, seed, zero_copy
        self._local = 0  # local steps; 0: the optimizer is the run's
        self._layout: List[Variable] = []
        self._tensors: List[torch.Tensor] = []
        self._stale = False  # the gradient's memory holds initial values
        self._zeroed = 0  # the version of the gradient's memory when a step begins; of zero_copy
        self._trained: List[int] = []
        self._trained_versions: List[int] = []  # when the step began
        self._warned = False  # of a write to a parameter
        refuse_scaler()

    # The layout.
    def _variables(self) -> List[Variable]:
        statistics = {id(buffer): (name, module) for name, module in self.model.named_modules()
                      if isinstance(module, NORM) for buffer in (module.running_mean, module.running_var)
                      if buffer is not None}
        self._counters, self._norms, self._constants = [], [], []
        self._statistics: List[int] = []
        for name, tensor in named_tensors(self.model):
            check_variable(name, tensor)
            at = len(self._tensors)
            if isinstance(tensor, torch.nn.Parameter):
                trained = tensor.requires_grad
                variable = Variable(name, tuple(tensor.shape), self._options.decays(name),
                                    self._options.rate_factor(name) if trained else 0.0)
                if trained:
                    self._trained.append(at)
            elif id(tensor) in statistics:
                variable = Variable(name, tuple(tensor.shape), False, 1.0, self._momentum(*statistics[id(tensor)]))
                self._statistics.append(at)
            elif not tensor.is_floating_point():
                continue
            else:
                variable = Variable(name, tuple(tensor.shape), False, 0.0)
                self._constants.append(at)
            self._layout.append(variable)
            self._tensors.append(tensor)
        self._options.check(variable.name for variable in self._layout)
        for module in self.model.modules():
            if getattr(module, "sparse", False) is True and hasattr(module, "embedding_dim"):
                raise ValueError("an embedding has sparse=True: disttf takes dense gradients only")
            if isinstance(module, NORM) and module.num_batches_tracked is not None:
                self._counters.append(module.num_batches_tracked)
                if not self._local:
                    self._norms.append((module, module.momentum))
                    module.momentum = 1.0  # so that the buffers hold the batch's own values
        return self._layout

    def _momentum(self, name: str, module: Any) -> float:
        if module.momentum is None:
            raise ValueError("%s has momentum=None, a cumulative average, which a run does not have" %
                             (name or type(module).__name__))
        return 0.0 if self._local else 1.0 - module.momentum

    def _fingerprint(self) -> Dict[str, str]:
        found = {"framework": "torch " + torch.__version__, "threads": str(torch.get_num_threads()),
                 "processor": torch.backends.cpu.get_cpu_capability()
                 if hasattr(torch.backends, "cpu") else "unknown",
                 "deterministic": str(torch.are_deterministic_algorithms_enabled()).lower(),
                 "precision": torch.get_float32_matmul_precision() if hasattr(torch, "get_float32_matmul_precision")
                 else "highest"}
        device = next((tensor.device for tensor in self._tensors if tensor.device.type != "cpu"), None)
        if device is not None:
            found["gpu"] = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
            found["tf32"] = str(torch.backends.cuda.matmul.allow_tf32).lower()
            found["cudnn"] = "%s, deterministic %s, benchmark %s" % (
                torch.backends.cudnn.version(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark)
        return found

    # The memories.
    def _map(self) -> None:
        if self._local:
            self._check_local()
        devices = {tensor.device for tensor in self._tensors}
        if len(devices) != 1:
            raise ValueError("the model is on several devices (%s); disttf takes one" % ", ".join(map(str, devices)))
        self._device = devices.pop()
        size = self._client.size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one memory is read-only
            self._parameters = torch.frombuffer(self._client.parameters, dtype=torch.float32, count=size)
        self._gradient = torch.frombuffer(self._client.gradient, dtype=torch.float32, count=size)
        on_host = self._device.type == "cpu"
        if self._zero_copy and (not on_host or self._local):
            raise ValueError("zero_copy is for models on the CPU, without local steps")
        if self._device.type == "cuda":
            pin_memory(self._parameters, True)
            pin_memory(self._gradient, False)
        # Gradients are collected here: in the task's memory, or on the GPU for one copy to it.
        self._out = self._gradient if on_host else torch.zeros(size, device=self._device)
        self._outs = self._views(self._out)
        if not self._zero_copy:
            self._own = torch.empty(size, device=self._device)
            self._own.copy_(self._flat_of_tensors())
        views = self._views(self._parameters)
        homes = views if self._zero_copy else self._views(self._own)
        parameters = set(self._trained)
        apart = self._apart()
        # (tensor, its place in the parameters' memory) of those that are copied one by one
        self._loose: List[Tuple[torch.Tensor, torch.Tensor]] = []
        with torch.no_grad():
            for at, tensor in enumerate(self._tensors):
                frozen = isinstance(tensor, torch.nn.Parameter) and at not in parameters
                if id(tensor) in apart or (self._zero_copy and at not in parameters and not frozen):
                    self._loose.append((tensor, views[at]))
                elif not self._zero_copy:
                    tensor.data = homes[at]
        self._homes = homes
        self._pointers = [tensor.data_ptr() for tensor in self._tensors]
        self._versions = [self._tensors[at]._version for at in self._constants]
        self._mapped = False

    def _apart(self) -> "set[int]":
        """Tensors that keep their own memory: not row by row, or of a recurrent network that cuDNN wants in one piece."""
        found = {id(tensor) for tensor in self._tensors if not tensor.is_contiguous()}
        if self._device.type == "cuda":
            found.update(id(parameter) for module in self.model.modules() if isinstance(module, torch.nn.RNNBase)
                         for parameter in module.parameters())
        return found

    def _views(self, flat: torch.Tensor) -> List[torch.Tensor]:
        return [flat[offset:offset + variable.size].view(variable.shape)
                for offset, variable in zip(self._client.offsets, self._layout)]

    def _flat_of_tensors(self) -> torch.Tensor:
        flat = torch.zeros(self._client.size, device=self._device)
        with torch.no_grad():
            for view, tensor in zip(self._views(flat), self._tensors):
                view.copy_(tensor)
        return flat

    def _write_initial(self) -> None:
        with torch.no_grad():
            self._gradient.copy_(self._flat_of_tensors())
        self._stale = True

    def _read_parameters(self) -> None:
        with torch.no_grad():
            if not self._zero_copy:
                self._own.copy_(self._parameters, non_blocking=True)
            elif not self._mapped:
                loose = {id(tensor) for tensor, _ in self._loose}
                for tensor, home in zip(self._tensors, self._homes):
                    if id(tensor) not in loose:
                        tensor.data = home
                self._pointers = [tensor.data_ptr() for tensor in self._tensors]
                self._mapped = True
            for tensor, view in self._loose:
                tensor.copy_(view, non_blocking=True)
            for counter in self._counters:
                counter.fill_(self.number)
            if self._constants and self._loose:
                self._versions = [self._tensors[at]._version for at in self._constants]

    def _prepare(self, step: Any) -> None:
        if [tensor.data_ptr() for tensor in self._tensors] != self._pointers:
            raise RuntimeError("a parameter or buffer of the model was replaced or moved after the run had begun")
        if self._stale or self._zero_copy:
            self._gradient.zero_()
            self._stale = False
        if self._zero_copy:
            for at in self._trained:
                self._tensors[at].grad = self._outs[at]
            self._zeroed = self._gradient._version
        elif not self._local:
            for at in self._trained:
                self._tensors[at].grad = None
        if self._local:
            self._before = self._own.clone()
        self._trained_versions = [] if self._local else [self._tensors[at]._version for at in self._trained]
        if self._seed:
            seed_all(step.seed)

    def _await_compute(self) -> Optional[Message]:
        self._check_written()
        return super()._await_compute()

    def _check_written(self) -> None:
        """Warns once if the program has written a parameter since the step began. Writes to .data and those of fused
        optimizers are not seen."""
        for at, version in zip(self._trained, self._trained_versions):
            if self._tensors[at]._version != version and not self._warned:
                self._warned = True
                _run.warn("step %d: the program wrote the parameter %s: the value is lost, since each step begins with the "
                          "run's parameters, which only the run's optimizer updates" % (self.number, self._layout[at].name))
        self._trained_versions = []

    def _write_gradient(self) -> None:
        """Collects the gradients in the task's memory. Raises if there is none."""
        self._check_constants()
        if self._trained and not self._has_gradient():
            raise RuntimeError("step %d: no trained parameter has a gradient: backward() must come before push()" %
                               self.number)
        with torch.no_grad():
            targets, sources = [], []
            for at in self._trained:
                gradient = self._tensors[at].grad
                self._tensors[at].grad = None
                if gradient is None:
                    self._outs[at].zero_()
                elif gradient is not self._outs[at]:
                    if gradient.layout is not torch.strided:
                        raise ValueError("the gradient of %s is sparse: disttf takes dense gradients only" %
                                         self._layout[at].name)
                    targets.append(self._outs[at])
                    sources.append(gradient)
            for at in self._statistics:
                targets.append(self._outs[at])
                sources.append(self._tensors[at])
            copy_all(targets, sources)
            self._deliver()

    def _has_gradient(self) -> bool:
        """Whether backward() gave one trained parameter a gradient; others may be unused."""
        found = [(self._tensors[at].grad, self._outs[at]) for at in self._trained]
        # zero_copy sets .grad before the step, so a gradient is there once its memory was written.
        return any(gradient is not None and (gradient is not out or out._version != self._zeroed) for gradient, out in found)

    def _write_difference(self) -> None:
        """The same, of local steps: parameters before less parameters after; statistics as they are."""
        self._check_constants()
        with torch.no_grad():
            torch.sub(self._before, self._flat_of_tensors(), out=self._out)
            for at in self._statistics:
                self._outs[at].copy_(self._tensors[at])
            self._deliver()

    def _deliver(self) -> None:
        """Copies the gradient from the GPU and waits for that."""
        if self._out is not self._gradient:
            self._gradient.copy_(self._out, non_blocking=True)
            self._synchronize()

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()

    def _check_constants(self) -> None:
        for at, version in zip(self._constants, self._versions):
            if self._tensors[at]._version != version:
                raise RuntimeError("the buffer %s was changed: of buffers only the running statistics of normalization "
                                   "layers may change" % self._layout[at].name)

    def _evaluate(self, function: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Calls it with the model in evaluation mode and without gradients."""
        training = [module for module in self.model.modules() if module.training]
        self.model.eval()
        try:
            with torch.no_grad():
                return _run.checked_numbers(function, number_of)
        finally:
            if self._mapped or not self._zero_copy:
                self._synchronize()
            for module in training:
                module.training = True

    def _end(self) -> None:
        """The model has the result, in memory of its own, and is an ordinary one again."""
        with torch.no_grad():
            if self._zero_copy:
                for tensor in self._tensors:
                    tensor.data = tensor.data.clone()
        self._synchronize()
        for module, momentum in self._norms:
            module.momentum = momentum

    # Other ways to run the loop.
    def local_steps(self, count: int) -> Iterator[LocalStep]:
        """Yields `count` local steps for each step of the run. The user's own optimizer updates the model in them; the
        run then takes the mean of the trainers' models. Needs --optimizer sgd --learning_rate 1 --learning_rate_decay
        none; --batch_size is the rows of all local steps together. The state of the user's optimizer is lost with its program."""
        if self._begun:
            raise RuntimeError("local_steps() must come before the run begins")
        if count < 1:
            raise ValueError("local_steps() takes at least 1 (got %d)" % count)
        self._local = count
        while True:
            step = self.next_step()
            if step is None:
                return
            numbers: Dict[str, float] = {}
            for index in range(count):
                local = LocalStep(step, index, count)
                if self._seed and index > 0:
                    seed_all(local.seed)
                yield local
                if local.pushed is None:
                    raise RuntimeError("step %d: the loop's body ended without step.push()" % step.number)
                for name, value in local.pushed.items():
                    numbers[name] = numbers.get(name, 0.0) + number_of(value) / count
            self._write_difference()
            step._push(numbers.pop("loss"), numbers)

    def _check_local(self) -> None:
        """Raises unless an update takes the mean of the trainers' gradients from the parameters, and nothing else."""
        needed = {"optimizer": "sgd", "learning_rate": 1, "learning_rate_decay": "none", "warmup_steps": 0,
                  "weight_decay": 0, "clip_norm": 0}
        welcome = self._client.welcome
        wrong = ["--%s %s instead of %s" % (flag, _run.shown(welcome[flag]), value)
                 for flag, value in needed.items() if welcome.get(flag, value) != value]
        if wrong:
            raise ValueError("run.local_steps() needs --optimizer sgd --learning_rate 1 --learning_rate_decay none, since "
                             "the run takes the mean of the models: the run has " + ", ".join(wrong))
        if any(self._layout[at].rate_factor != 1 for at in self._trained):
            raise ValueError("run.local_steps() allows no rates in join(), since the run takes the mean of the models")

    def sampler(self, count: Optional[int] = None) -> "Sampler":
        """A batch_sampler for a DataLoader of a data set of `count` rows (default: join()'s rows), for batches()."""
        return Sampler(self, count)

    def batches(self, loader: Any) -> Iterator[Tuple[Step, Any]]:
        """Yields (step, the loader's batch). The loader runs ahead, and is started again where the run is when that was
        rolled back; give it persistent_workers=True. Random numbers that its workers draw are set from run, step and
        slot, too."""
        sampler = loader.batch_sampler
        if not isinstance(sampler, Sampler):
            raise TypeError("batches() needs a DataLoader(..., batch_sampler=run.sampler(n))")
        iterator: Any = None
        while True:
            message = self._await_compute()
            if message is None:
                return
            if iterator is None or sampler.expected() != (message.step, message.slot):
                sampler.restart(message)
                iterator = iter(loader)
            batch = next(iterator)
            sampler.taken()
            step = self.next_step()
            assert step is not None
            yield step, batch
            if not step._pushed:
                raise RuntimeError("step %d: the loop's body ended without step.push()" % step.number)


class Optimizer(torch.optim.Optimizer):
    """A drop-in: `opt = disttf.torch.Optimizer(model)`, then zero_grad(), backward() and step() as ever. The optimizer
    itself and its learning rate are the run's. step() pushes, waits and fills in the next parameters; at the end of the
    run it raises RunOver, which ends the program with 0. The shown loss is what backward() was called on. The groups'
    "lr" is the run's --learning_rate, for programs that show it; a scheduler that changes it has no effect."""

    def __init__(self, model: torch.nn.Module, data: Optional[str] = None, rows: Optional[int] = None, *,
                 evaluate: Optional[Callable[[], Mapping[str, Any]]] = None, no_decay: Iterable[str] = (),
                 rates: Optional[Mapping[str, float]] = None, seed: bool = True) -> None:
        self.run = join(model, data, rows, no_decay=no_decay, rates=rates, seed=seed)
        super().__init__([parameter for parameter in model.parameters() if parameter.requires_grad], {"lr": 0.0})
        if evaluate is not None:
            self.run.evaluate(evaluate)
        self._losses: List[torch.Tensor] = []
        record_losses(self._losses)
        self.current = self._next()
        self._rate = float(self.run.info.get("learning_rate", 0.0))
        self._warned = False  # of another rate
        for group in self.param_groups:
            group["lr"] = self._rate

    def _next(self) -> Step:
        step = self.run.next_step()
        if step is None:
            raise RunOver(0)
        self._losses.clear()
        found: Step = step
        return found

    def step(self, closure: Optional[Callable[[], Any]] = None, **numbers: Any) -> Any:  # type: ignore[override]
        found = None
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        if not self._warned and any(group["lr"] != self._rate for group in self.param_groups):
            self._warned = True
            _run.warn("step %d: the program changed the optimizer's lr, without effect: the run's --learning_rate (%g), "
                      "--learning_rate_decay and --warmup_steps decide" % (self.current.number, self._rate))
        loss = numbers.pop("loss", None)
        if loss is None:
            loss = sum(number_of(each) for each in self._losses)
        self.current.push(loss=loss, **numbers)
        self.current = self._next()
        return found
