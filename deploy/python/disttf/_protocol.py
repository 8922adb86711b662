"""The program's side of docs/program_protocol.md: the socket, its messages and the two memories."""
import array
import json
import math
import mmap
import os
import socket
import struct
import sys
from collections import deque
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

PROTOCOL = 1
FD_VARIABLE = "DISTTF_PROGRAM_FD"
MAX_BODY = 65536
ALIGNMENT = 16  # floats

HELLO, VARIABLE, LAYOUT, INITIAL, GRADIENT, EVALUATION, ASK_ROWS, FAILED = range(1, 9)
WELCOME, GIVE_INITIAL, COMPUTE, EVALUATE, ROWS, END, REFUSED = range(65, 72)

_HEADER = struct.Struct("<4sHHIIQQQQdQ")
_MAGIC = b"DTP1"


class Variable(NamedTuple):
    """One variable of the run. momentum: only of a running statistic."""

    name: str
    shape: Tuple[int, ...]
    decays: bool = True
    rate_factor: float = 1.0
    momentum: Optional[float] = None

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    def json(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {"name": self.name, "shape": list(self.shape)}
        if not self.decays:
            found["decays"] = False
        if self.rate_factor != 1:
            found["rate_factor"] = float(self.rate_factor)
        if self.momentum is not None:
            found["momentum"] = float(self.momentum)
        return found


class Message(NamedTuple):
    """A message of the task."""

    kind: int
    number: int
    step: int
    slot: int
    seed: int
    total: int  # `count`, which is a method of tuples
    body: bytes


class ProtocolError(RuntimeError):
    """The task sent what docs/program_protocol.md does not allow."""


class TaskEnded(SystemExit):
    """The task has ended, so the program ends, too. Python prints the text and exits with 1."""


class Refused(SystemExit):
    """The task refused the program. The text is printed already; `code` is the exit code."""


def offsets_of(variables: Sequence[Variable]) -> Tuple[List[int], int]:
    """Returns where each variable begins in the vector, and the vector's size, in floats."""
    found, end = [], 0
    for variable in variables:
        found.append(end)
        end += (variable.size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return found, end


def encode(kind: int, body: bytes = b"", number: int = 0, step: int = 0, slot: int = 0, seed: int = 0, count: int = 0,
           value: float = 0.0) -> bytes:
    return _HEADER.pack(_MAGIC, kind, 0, len(body), number, step, slot, seed, count, value, 0) + body


def decode(packet: Any) -> Tuple[Message, float]:
    """Returns the message and its `value`. Raises ProtocolError."""
    if len(packet) < _HEADER.size:
        raise ProtocolError("a packet of %d bytes" % len(packet))
    magic, kind, flags, size, number, step, slot, seed, count, value, reserved = _HEADER.unpack_from(packet)
    if magic != _MAGIC or flags or reserved or size != len(packet) - _HEADER.size:
        raise ProtocolError("a packet whose header is invalid")
    return Message(kind, number, step, slot, seed, count, bytes(packet[_HEADER.size:])), value


def json_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def numbers_json(numbers: Mapping[str, float]) -> bytes:
    """JSON of the finite ones, since JSON has no others. b"": there are none."""
    finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
    return json_of(finite) if finite else b""


class Client:
    """A connection to the task. Belongs to one thread of one process: forked children may not use it.

    After begin(): `welcome` has WELCOME's values, `parameters` is a read-only map of the vector, `gradient` a
    writable one, `offsets` tells where each variable begins, in floats.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pid = os.getpid()
        self.welcome: Dict[str, Any] = {}
        self.offsets: List[int] = []
        self.size = 0
        self.parameters: Any = None
        self.gradient: Any = None
        self._socket = socket.socket(fileno=fd)
        self._packet = bytearray(_HEADER.size + MAX_BODY)
        self._view = memoryview(self._packet)
        self._waiting: Deque[Message] = deque()
        self._over = False  # the task has ended or refused the program
        os.set_inheritable(fd, False)  # not for programs that this one starts
        os.register_at_fork(after_in_child=self._socket.close)

    def begin(self, variables: Sequence[Variable], hello: Mapping[str, Any]) -> None:
        """Sends HELLO and the layout, waits for WELCOME, maps the memories. A spare waits here until it is used."""
        self.offsets, self.size = offsets_of(variables)
        self.send(HELLO, json_of(dict(hello, protocol=PROTOCOL)))
        for variable in variables:
            self.send(VARIABLE, json_of(variable.json()))
        self.send(LAYOUT, count=len(variables))
        packet, descriptors = self._receive_with_descriptors()
        message = self._checked(packet)
        try:
            if message.kind != WELCOME or len(descriptors) != 2:
                raise ProtocolError("WELCOME was expected, with 2 descriptors; kind %d came with %d" %
                                    (message.kind, len(descriptors)))
            self.welcome = json.loads(message.body.decode())
            if self.welcome.get("protocol") != PROTOCOL or self.welcome.get("size") != self.size:
                raise ProtocolError("WELCOME is of protocol %r and %r floats; the program has %d and %d" % (
                    self.welcome.get("protocol"), self.welcome.get("size"), PROTOCOL, self.size))
            self.parameters = mmap.mmap(descriptors[0], 4 * self.size, mmap.MAP_SHARED, mmap.PROT_READ)
            self.gradient = mmap.mmap(descriptors[1], 4 * self.size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def receive(self) -> Message:
        """Returns the next message: GIVE_INITIAL, COMPUTE, EVALUATE or END."""
        return self._waiting.popleft() if self._waiting else self._next()

    def ask_rows(self, step: int, slot: int, count: int) -> "array.array[int]":
        """Returns the row numbers of a batch, of `count` rows of the data set. Messages that come in between wait."""
        self.send(ASK_ROWS, step=step, slot=slot, count=count)
        found = array.array("I")
        while True:
            message = self._next()
            if message.kind != ROWS:
                self._waiting.append(message)
                continue
            if (message.step, message.slot, message.number) != (step, slot, len(found)):
                raise ProtocolError("ROWS of step %d, slot %d from row %d" % (message.step, message.slot, message.number))
            found.frombytes(message.body)
            if len(found) >= message.total:
                return found

    def send(self, kind: int, body: bytes = b"", step: int = 0, slot: int = 0, count: int = 0, value: float = 0.0) -> None:
        if len(body) > MAX_BODY:
            raise ProtocolError("a message of %d bytes; at most %d" % (len(body), MAX_BODY))
        if os.getpid() != self.pid:
            raise RuntimeError("a forked process may not use the run of its parent")
        try:
            self._socket.send(encode(kind, body, step=step, slot=slot, count=count, value=value))
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended() from None

    def fail(self, sentence: str) -> None:
        """Sends FAILED if the task can still receive it."""
        try:
            if os.getpid() == self.pid and not self._over:
                self._socket.send(encode(FAILED, sentence.encode("utf-8", "replace")[:4096]))
        except OSError:
            pass

    def _next(self) -> Message:
        try:
            size = self._socket.recv_into(self._view)
        except ConnectionResetError:
            size = 0
        return self._checked(self._view[:size])

    def _receive_with_descriptors(self) -> Tuple[bytes, List[int]]:
        descriptors = array.array("i")
        try:
            packet, ancillary, _, _ = self._socket.recvmsg(len(self._packet), socket.CMSG_SPACE(8 * descriptors.itemsize))
        except ConnectionResetError:
            return b"", []
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[:len(data) - len(data) % descriptors.itemsize])
        return packet, list(descriptors)

    def _checked(self, packet: Any) -> Message:
        """Ends the program if the packet is the socket's end or a REFUSED."""
        if len(packet) == 0:
            raise self._ended()
        message, _ = decode(packet)
        if message.kind == REFUSED:
            self._over = True
            print("disttf: " + message.body.decode("utf-8", "replace"), file=sys.stderr, flush=True)
            raise Refused(message.number)
        return message

    def _ended(self) -> TaskEnded:
        self._over = True
        return TaskEnded("disttf: the task that this program computes for has ended")
