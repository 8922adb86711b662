"""What disttf.torch does with single models, tensors and generators, without a run."""
import array
import random
import sys
from typing import Any, Iterator, List, Tuple

import torch

NORM = torch.nn.modules.batchnorm._NormBase


def seed_all(seed: int) -> None:
    """Sets the generators of torch, random and, where it is imported, NumPy."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed() looks for every kind of device, 90 us
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def inner_model(model: torch.nn.Module) -> torch.nn.Module:
    """The model that torch.compile() wraps."""
    return getattr(model, "_orig_mod", model)


def named_tensors(model: torch.nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Parameters, then the buffers that state_dict() has; each once, by its first name."""
    yield from model.named_parameters()
    seen = set()
    for prefix, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set and id(buffer) not in seen:
                seen.add(id(buffer))
                yield (prefix + "." if prefix else "") + name, buffer


def check_variable(name: str, tensor: torch.Tensor) -> None:
    if torch.nn.parameter.is_lazy(tensor):
        raise ValueError("%s has no shape yet: call the model once before join()" % name)
    if isinstance(tensor, torch.nn.Parameter) or tensor.is_floating_point():
        if tensor.dtype != torch.float32:
            raise ValueError("%s is %s: a run's variables are float32; for bfloat16 arithmetic use torch.autocast" % (
                name, str(tensor.dtype).replace("torch.", "")))


def number_of(value: Any) -> float:
    return float(value.detach()) if isinstance(value, torch.Tensor) else float(value)


def indices_of(rows: "array.array[int]") -> torch.Tensor:
    if not rows:
        return torch.empty(0, dtype=torch.int64)
    if max(rows) < 2**31:
        return torch.frombuffer(rows, dtype=torch.int32).to(torch.int64)
    return torch.tensor(rows.tolist(), dtype=torch.int64)


def mixed_seed(seed: int, number: int) -> int:
    """SplitMix64's output for `seed` at `number`."""
    z = (seed + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ (z >> 31)


def copy_all(targets: List[torch.Tensor], sources: List[torch.Tensor]) -> None:
    if hasattr(torch, "_foreach_copy_") and targets:
        torch._foreach_copy_(targets, sources)
    else:
        for target, source in zip(targets, sources):
            target.copy_(source)


def pin_memory(tensor: torch.Tensor, read_only: bool) -> None:
    """Page-locks the memory, so that copies to and from the GPU are fast and do not block. Works without, slower."""
    try:
        runtime = torch.cuda.cudart()
        size = tensor.numel() * tensor.element_size()
        failed = int(runtime.cudaHostRegister(tensor.data_ptr(), size, 8 if read_only else 0))
        if failed:
            runtime.cudaGetLastError() if hasattr(runtime, "cudaGetLastError") else None
    except (AttributeError, RuntimeError):
        pass


def refuse_scaler() -> None:
    """A scaled loss gives scaled gradients, which the optimizer on the parameter servers would take as they are."""
    for module in (getattr(torch, "amp", None), torch.cuda.amp):
        scaler = getattr(module, "GradScaler", None)
        if scaler is None or hasattr(scaler.scale, "of_disttf"):
            continue

        def scale(self: Any, outputs: Any, original: Any = scaler.scale) -> Any:
            if self.is_enabled():
                raise RuntimeError("GradScaler scales gradients, which a run does not undo: use torch.autocast with "
                                   "bfloat16 and no scaler")
            return original(self, outputs)

        scale.of_disttf = True  # type: ignore[attr-defined]
        scaler.scale = scale


def record_losses(losses: List[torch.Tensor]) -> None:
    """From now on appends the losses that backward() is called on."""
    original = torch.Tensor.backward

    def backward(self: torch.Tensor, *arguments: Any, **named: Any) -> None:
        if self.numel() == 1:
            losses.append(self.detach())
        original(self, *arguments, **named)

    torch.Tensor.backward = backward  # type: ignore[method-assign]
