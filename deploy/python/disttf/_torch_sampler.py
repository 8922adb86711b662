"""The batches of a run for a DataLoader of PyTorch."""
import sys
from collections import deque
from typing import Any, Deque, Iterable, Iterator, List, Optional, Tuple

from ._protocol import Message
from ._run import BaseRun
from ._torch_tensors import mixed_seed, seed_all


class Sampler:
    """Yields the row numbers of the coming batches. Runs ahead of the run only where the coming (step, slot) are known:
    in a synchronous run that is not elastic."""

    def __init__(self, run: BaseRun, count: Optional[int]) -> None:
        self._run, self._count = run, count
        self._given: Deque[Tuple[int, int]] = deque()  # handed to the loader, not yet used
        self._next: Optional[Tuple[int, int]] = None
        self._first: Optional[Message] = None

    def restart(self, message: Message) -> None:
        self._given.clear()
        self._next, self._first = (message.step, message.slot), message

    def expected(self) -> Optional[Tuple[int, int]]:
        """The batch that the loader yields next; None: it has no further one."""
        return self._given[0] if self._given else self._next

    def taken(self) -> None:
        self._given.popleft()

    def __iter__(self) -> Iterator["_Rows"]:
        info, first = self._run.info, self._first
        if first is None:
            raise RuntimeError("a loader with run.sampler() is for run.batches(loader)")
        ahead = info.get("sync", True) and not info.get("elastic", False)
        while self._next is not None:
            step, slot = self._next
            body = first.body if (step, slot) == (first.step, first.slot) else b""
            rows = self._run._rows(step, slot, body, self._count)
            more = ahead and step + 1 < info.get("train_steps", sys.maxsize)
            self._next = (step + 1, slot) if more else None
            self._given.append((step, slot))
            yield _Rows(rows, mixed_seed(int(info.get("seed", 0)) ^ mixed_seed(step, 1), slot))


class _Rows(List[int]):
    """Row numbers of one batch. Iterating over them, as a loader's worker does, sets the generators to a seed."""

    def __init__(self, rows: Iterable[int], seed: int) -> None:
        super().__init__(rows)
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        seed_all(self.seed)
        return super().__iter__()

    def __reduce__(self) -> Any:
        return _Rows, (tuple(super().__iter__()), self.seed)
