"""The part of a run that all frameworks share: joining, the loop, evaluation, and what happens to exceptions."""
import array
import atexit
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, TypeVar

from . import _protocol as protocol
from ._protocol import Message, Variable
from ._version import VERSION

MAX_NUMBERS = 32

Evaluation = TypeVar("Evaluation", bound=Callable[[], Mapping[str, Any]])

_client: Optional[protocol.Client] = None
_begun_run: Optional["BaseRun"] = None
_reported = False  # the task need not receive a further reason


def connect() -> protocol.Client:
    """Returns the process's only connection. Exits with 2 if disttf did not start the process."""
    global _client
    if _client is None:
        number = os.environ.pop(protocol.FD_VARIABLE, None)  # not for the processes that this one starts
        if number is None:
            print("disttf: this program was not started by disttf; start it with: disttf launch --program -- python3 " +
                  " ".join(sys.argv), file=sys.stderr)
            raise SystemExit(2)
        _client = protocol.Client(int(number))
    return _client


class Step:
    """One batch of one step of the run."""

    def __init__(self, run: "BaseRun", message: Message) -> None:
        self.run = run
        self.number = message.step
        self.slot = message.slot
        self.seed = message.seed
        self._body = message.body
        self._pushed = False

    def row_numbers(self, count: Optional[int] = None) -> "array.array[int]":
        """The batch's rows, of a data set of `count` rows (default: `rows` of join())."""
        return self.run._rows(self.number, self.slot, self._body, count)

    def _push(self, loss: Any, numbers: Mapping[str, Any]) -> None:
        """Sends the gradient that lies in the memory."""
        if self._pushed:
            raise RuntimeError("step %d: push() was called twice" % self.number)
        if len(numbers) > MAX_NUMBERS:
            raise ValueError("push() takes at most %d numbers (got %d)" % (MAX_NUMBERS, len(numbers)))
        body = protocol.numbers_json({name: float(value) for name, value in numbers.items()}) if numbers else b""
        self._pushed = True
        self.run._client.send(protocol.GRADIENT, body, self.number, self.slot, value=float(loss))


class BaseRun:
    """A run that this program takes part in. It begins at the first step, or with the first look at `info`, so
    that evaluate() may be called between join() and the loop."""

    step_type: Any = Step

    def __init__(self, framework: str, data: Optional[str], rows: Optional[int]) -> None:
        self._client = connect()
        self._hello: Dict[str, Any] = {"client": "python %s, %s" % (VERSION, framework)}
        if data is not None:
            self._hello["data"] = data
        if rows is not None:
            self._hello["rows"] = rows
        self._counts = set() if rows is None else {rows}
        self._evaluation: Optional[Callable[[], Mapping[str, Any]]] = None
        self._begun = False
        self._compute: Optional[Message] = None
        self._current: Optional[Step] = None
        self.finished = False
        self.number = 0  # the newest step

    # What a framework's run does.
    def _variables(self) -> List[Variable]:
        raise NotImplementedError

    def _fingerprint(self) -> Dict[str, str]:
        return {}

    def _map(self) -> None:
        """Called once, when the memories are there."""

    def _write_initial(self) -> None:
        """Writes the initial values to the gradient's memory."""
        raise NotImplementedError

    def _read_parameters(self) -> None:
        """Takes the parameters from their memory."""
        raise NotImplementedError

    def _prepare(self, step: Any) -> None:
        """Called after _read_parameters() for each batch."""

    def _evaluate(self, function: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        return checked_numbers(function)

    def _end(self) -> None:
        """Called at the end, after _read_parameters()."""

    # The interface.
    def evaluate(self, function: Evaluation) -> Evaluation:
        """Decorator: the chief's program calls the function now and then. It returns numbers, of which "loss" and
        "accuracy" (0 to 1) have a meaning: --eval_every, --patience, --target_accuracy and the result use them."""
        if self._begun:
            raise RuntimeError("run.evaluate must come before the loop and before run.info")
        self._evaluation = function
        return function

    @property
    def info(self) -> Dict[str, Any]:
        """The values of WELCOME: "batch_size", "train_steps", "is_chief", "rank", "trainers", ... Waits for them."""
        self.begin()
        return self._client.welcome

    def begin(self) -> None:
        """Joins the run. The loop does this."""
        if self._begun:
            return
        variables = self._variables()
        _check(variables)
        fingerprint = self._fingerprint()
        if fingerprint:
            self._hello["fingerprint"] = fingerprint
        self._hello["evaluates"] = self._evaluation is not None
        self._begun = True
        _watch(self)
        self._client.begin(variables, self._hello)
        self._map()

    def __iter__(self) -> Iterator[Any]:
        while True:
            step = self.next_step()
            if step is None:
                return
            yield step
            if not step._pushed:
                raise RuntimeError("step %d: the loop's body ended without step.push()" % step.number)

    def next_step(self) -> Optional[Any]:
        """Waits for the next batch and fills in the parameters. None: the run is over."""
        message = self._await_compute()
        self._compute = None
        if message is None:
            return None
        self.number = message.step
        self._current = self.step_type(self, message)
        self._read_parameters()
        self._prepare(self._current)
        return self._current

    # The rest is for adapters.
    def _await_compute(self) -> Optional[Message]:
        """Returns the next COMPUTE without taking it, and answers what comes before it. None: the run is over."""
        self.begin()
        while self._compute is None and not self.finished:
            message = self._client.receive()
            if message.kind == protocol.COMPUTE:
                self._compute = message
            elif message.kind == protocol.EVALUATE:
                self._answer_evaluate(message)
            elif message.kind == protocol.GIVE_INITIAL:
                self._write_initial()
                self._client.send(protocol.INITIAL)
            elif message.kind == protocol.END:
                self.number, self.finished = message.step, True
                self._read_parameters()
                self._end()
            else:
                raise protocol.ProtocolError("a message of kind %d" % message.kind)
        return self._compute

    def _answer_evaluate(self, message: Message) -> None:
        body = b""
        if self._evaluation is not None:
            self.number = message.step
            self._read_parameters()
            found = self._evaluate(self._evaluation)
            body = protocol.numbers_json(found)
        self._client.send(protocol.EVALUATION, body, message.step)

    def _rows(self, step: int, slot: int, body: bytes, count: Optional[int]) -> "array.array[int]":
        if count is None:
            if "rows" not in self._hello:
                raise TypeError("step.rows() needs the number of rows, here or in join(rows=...)")
            count = self._hello["rows"]
        known = self._counts == {count}
        self._counts.add(count)
        if known and body:
            rows = array.array("I")
            rows.frombytes(body)
            return rows
        return self._client.ask_rows(step, slot, count)


def checked_numbers(function: Callable[[], Mapping[str, Any]], number: Callable[[Any], float] = float) -> Dict[str, float]:
    """Calls a function of run.evaluate and returns its numbers. Raises TypeError for anything but a dict of numbers."""
    found: Any = function()
    name = getattr(function, "__name__", "the evaluation function")
    if not isinstance(found, Mapping):
        raise TypeError("%s returned %s: an evaluation function must return a dict of numbers, such as {\"loss\": loss, "
                        "\"accuracy\": accuracy}" % (name, "None" if found is None else "a " + type(found).__name__))
    numbers = {}
    for key, value in found.items():
        try:
            numbers[key] = number(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError("%s returned a dict in which %s is a %s: it must be one number (%s)" % (
                name, key, type(value).__name__, error)) from error
    return numbers


def _check(variables: Sequence[Variable]) -> None:
    names = set()
    for variable in variables:
        if variable.name in names:
            raise ValueError("two variables have the name %s" % variable.name)
        names.add(variable.name)
        if not 0 < len(variable.name) <= 256 or not all("!" <= letter <= "~" for letter in variable.name):
            raise ValueError("a variable's name is 1 to 256 printable ASCII characters without blanks (got %r)" %
                             variable.name)
        if variable.size == 0:
            raise ValueError("variable %s has no elements: its shape is %s" % (variable.name, list(variable.shape)))
    if not variables:
        raise ValueError("there is nothing to train: the model has no variables")


# What becomes of an exception that leaves the program, and of a program that ends too early.
_INSIDE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INSTALLED = tuple(os.path.join(os.path.realpath(prefix), "") for prefix in (
    os.path.dirname(os.__file__), os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "lib64")))


def _is_users(path: str) -> bool:
    """Whether a file is of the user's own: not of this package, the standard library or an installed package, which may
    lie in another folder than sys.prefix, as of a user's or of PYTHONPATH."""
    real = os.path.realpath(path)
    return not (path.startswith("<") or real.startswith(_INSTALLED) or real.startswith(_INSIDE) or
                {"site-packages", "dist-packages"} & set(real.split(os.sep)))


def sentence_of(error: BaseException) -> str:
    """`train.py:42: ValueError: text`, of the innermost line in a file of the user's own."""
    text = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    if isinstance(error, SyntaxError):
        text = "%s: %s" % (type(error).__name__, error.msg)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename)] or list(frames)
    if own:
        text = "%s:%s: %s" % (os.path.basename(own[-1].filename), own[-1].lineno, text)
    return text[:1000]


def shown(value: Any) -> str:
    """A value of WELCOME as its flag has it."""
    return "%g" % value if isinstance(value, float) else str(value)


def warn(sentence: str) -> None:
    """Prints `disttf: train.py:42: sentence` to standard error, with the innermost line of the user's own."""
    own = [frame for frame in traceback.extract_stack() if _is_users(frame.filename)]
    where = "%s:%s: " % (os.path.basename(own[-1].filename), own[-1].lineno) if own else ""
    print("disttf: " + where + sentence, file=sys.stderr, flush=True)


def _report(kind: Any, error: Any, trace: Any) -> None:
    """The process's excepthook."""
    global _reported
    if os.getpid() == _PID and not _reported and not (_begun_run and _begun_run.finished):
        _reported = True
        if not issubclass(kind, KeyboardInterrupt) and (_client or protocol.FD_VARIABLE in os.environ):
            try:
                connect().fail(sentence_of(error))
            except OSError:
                pass  # a process that a user's program has spawned has the variable, but not the socket
    if not issubclass(kind, KeyboardInterrupt):
        _hook_before(kind, error, trace)


def _report_early_end() -> None:
    """At exit: says why the run misses this program, if nothing has said so."""
    run = _begun_run
    if run is None or run.finished or _reported or os.getpid() != _PID:
        return
    steps = run._client.welcome.get("train_steps")
    of = " of %s" % steps if steps is not None else ""
    run._client.fail("the program ended at step %d%s, before the run was over" % (run.number, of))


def _watch(run: BaseRun) -> None:
    global _begun_run
    if _begun_run is not None:
        raise RuntimeError("a program takes part in one run only")
    _begun_run = run
    atexit.register(_report_early_end)


_PID = os.getpid()
_hook_before = sys.excepthook
if protocol.FD_VARIABLE in os.environ:
    sys.excepthook = _report
