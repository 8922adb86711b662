#!/usr/bin/env python3
"""Usage: fake_task.py [--steps N] [--elastic] [--rows-mode] -- COMMAND

Plays the task's side of docs/program_protocol.md for one program: a run with one trainer and an optimizer of its own
(sgd). Checks every packet and, at the end, that the program exited with 0. The memories are sealed as a task seals them.
Pure Python >= 3.7; FakeTask is for tests, the command for clients in other languages.
"""
import argparse
import array
import ctypes
import fcntl
import json
import math
import mmap
import os
import random
import socket
import struct
import subprocess
import sys

HEADER = struct.Struct("<4sHHIIQQQQdQ")
HELLO, VARIABLE, LAYOUT, INITIAL, GRADIENT, EVALUATION, ASK_ROWS, FAILED = range(1, 9)
WELCOME, GIVE_INITIAL, COMPUTE, EVALUATE, ROWS, END, REFUSED = range(65, 72)
NAMES = dict(enumerate("HELLO VARIABLE LAYOUT INITIAL GRADIENT EVALUATION ASK_ROWS FAILED".split(), 1))
F_ADD_SEALS, SHRINK, GROW, SEAL, FUTURE_WRITE = 1033, 2, 4, 1, 16


class Broken(AssertionError):
    """The program broke the protocol."""


class ProgramFailed(Exception):
    """The program sent FAILED."""


def require(condition, sentence, *values):
    if not condition:
        raise Broken(sentence % values)


def memory_file(name, size):
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        fd = ctypes.CDLL(None, use_errno=True).memfd_create(name.encode(), 3)
    os.ftruncate(fd, size)
    return fd


class Rows:
    """Row numbers as a function of step and slot: each epoch is a permutation of all rows."""

    def __init__(self, seed, batch, slots):
        self.seed, self.batch, self.slots = seed, batch, slots
        self.permutations = {}

    def of(self, step, slot, count):
        first = (step * self.slots + slot) * self.batch
        return [self._row((first + i) // count, (first + i) % count, count) for i in range(self.batch)]

    def _row(self, epoch, at, count):
        key = (epoch, count)
        if key not in self.permutations:
            rows = list(range(count))
            random.Random(self.seed * 1000003 + epoch).shuffle(rows)
            self.permutations[key] = rows
        return self.permutations[key][at]


class FakeTask:
    """Starts the program; each method plays one part of a conversation."""

    def __init__(self, command, steps=20, batch=10, slots=1, seed=7, learning_rate=0.1, timeout=120, env=None, **welcome):
        self.timeout = timeout
        self.rows = Rows(seed, batch, slots)
        self.learning_rate = learning_rate
        self.welcome = dict({"protocol": 1, "job": "chief", "task_index": 0, "is_chief": True, "rank": 0, "trainers": slots,
                             "batch_size": batch, "slots": slots, "train_steps": steps, "seed": seed, "elastic": False,
                             "sync": True, "optimizer": "sgd", "learning_rate": learning_rate,
                             "learning_rate_decay": "none", "warmup_steps": 0, "weight_decay": 0, "clip_norm": 0}, **welcome)
        self.hello, self.variables, self.offsets, self.size = {}, [], [], 0
        self.count = None  # rows of the data set, once known
        self.losses, self.numbers, self.evaluations, self.asked = [], [], [], []
        self.process, self.socket = self._start(command, env)

    def _start(self, command, env):
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.settimeout(self.timeout)
        with its:
            process = subprocess.Popen(command, pass_fds=[its.fileno()], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env=dict(os.environ, DISTTF_PROGRAM_FD=str(its.fileno()), **(env or {})))
        return process, mine

    # Packets.
    def send(self, kind, body=b"", fds=(), number=0, step=0, slot=0, seed=0, count=0, value=0.0):
        packet = HEADER.pack(b"DTP1", kind, 0, len(body), number, step, slot, seed, count, value, 0) + body
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([packet], ancillary)
        except BrokenPipeError:
            pass  # the program has ended; its last packet, such as FAILED, is still to be received

    def receive(self, *expected):
        """Returns (kind, number, step, slot, seed, count, value, body). Answers ASK_ROWS unless that is expected."""
        while True:
            packet = self.socket.recv(HEADER.size + 65536 + 1)
            require(packet, "the program closed its socket; %s was expected", [NAMES[kind] for kind in expected])
            require(len(packet) >= HEADER.size, "a packet of %d bytes", len(packet))
            magic, kind, flags, size, *fields, reserved = HEADER.unpack_from(packet)
            body = packet[HEADER.size:]
            require(magic == b"DTP1" and flags == 0 and reserved == 0, "an invalid header: %s", packet[:HEADER.size].hex())
            require(size == len(body) <= 65536, "body_size is %d, the body has %d bytes", size, len(body))
            require(kind in NAMES, "a message of kind %d", kind)
            if kind == FAILED and FAILED not in expected:
                raise ProgramFailed(body.decode())
            if kind == ASK_ROWS and ASK_ROWS not in expected:
                self.answer_rows(fields[1], fields[2], fields[4])
                continue
            require(kind in expected, "%s came, %s was expected", NAMES[kind], [NAMES[each] for each in expected])
            return [kind] + fields + [body]

    # The parts of a conversation.
    def handshake(self):
        """HELLO to LAYOUT."""
        hello = self.receive(HELLO)
        self.hello = json.loads(hello[-1].decode())
        require(self.hello.get("protocol") == 1, "HELLO's protocol is %r", self.hello.get("protocol"))
        require(isinstance(self.hello.get("client"), str), "HELLO has no client")
        self.count = self.hello.get("rows")
        require(self.count is None or 1 <= self.count < 2**32, "HELLO's rows are %r", self.count)
        names = set()
        while True:
            message = self.receive(VARIABLE, LAYOUT)
            if message[0] == LAYOUT:
                require(message[5] == len(self.variables), "LAYOUT counts %d of %d", message[5], len(self.variables))
                break
            variable = json.loads(message[-1].decode())
            name, shape = variable["name"], variable["shape"]
            require(name not in names and 0 < len(name) <= 256 and all("!" <= c <= "~" for c in name), "name %r", name)
            require(all(isinstance(n, int) and n > 0 for n in shape), "%s has shape %s", name, shape)
            require(0 <= variable.get("rate_factor", 1) <= 1000, "%s: rate_factor", name)
            require(0 <= variable.get("momentum", 0) < 1, "%s: momentum", name)
            names.add(name)
            variable["size"] = math.prod(shape) if hasattr(math, "prod") else product(shape)
            self.variables.append(variable)
            self.offsets.append(self.size)
            self.size += -(-variable["size"] // 16) * 16
        require(self.variables, "the program has no variables")
        self.welcome["size"] = self.size

    def send_welcome(self):
        fds = [memory_file("parameters", 4 * self.size), memory_file("gradient", 4 * self.size)]
        self.parameters, self.gradient = (memoryview(mmap.mmap(fd, 4 * self.size)).cast("f") for fd in fds)
        fcntl.fcntl(fds[1], F_ADD_SEALS, SHRINK | GROW | SEAL)
        try:
            fcntl.fcntl(fds[0], F_ADD_SEALS, SHRINK | GROW | SEAL | FUTURE_WRITE)
        except OSError:
            pass  # before Linux 5.1
        self.send(WELCOME, json.dumps(self.welcome).encode(), fds)
        for fd in fds:
            os.close(fd)

    def begin(self):
        self.handshake()
        self.send_welcome()

    def give_initial(self):
        self.send(GIVE_INITIAL)
        self.receive(INITIAL)
        self.parameters[:] = self.gradient
        self.check_padding()

    def check_padding(self):
        for variable, offset in zip(self.variables, self.offsets):
            for at in range(offset + variable["size"], offset + -(-variable["size"] // 16) * 16):
                require(self.gradient[at] == 0, "the padding after %s is %r", variable["name"], self.gradient[at])

    def answer_rows(self, step, slot, count, limit=7):
        """In packets of few rows, since a batch may be larger than a packet."""
        self.asked.append((step, slot))
        require(1 <= count < 2**32, "ASK_ROWS for %d rows", count)
        self.count = self.count or count
        rows = self.rows.of(step, slot, count)
        for first in range(0, len(rows), limit):
            body = array.array("I", rows[first:first + limit]).tobytes()
            self.send(ROWS, body, number=first, step=step, slot=slot, count=len(rows))

    def seed_of(self, step, slot):
        return random.Random(step * 4099 + slot).getrandbits(64)

    def compute(self, step, slot=0, bare=False):
        """One batch: COMPUTE to GRADIENT. Returns the gradient as an array. bare: without row numbers."""
        body = array.array("I", self.rows.of(step, slot, self.count)).tobytes() if self.count and not bare else b""
        self.send(COMPUTE, body, step=step, slot=slot, seed=self.seed_of(step, slot))
        _, number, its_step, its_slot, _, _, loss, numbers = self.receive(GRADIENT)
        require((its_step, its_slot) == (step, slot), "GRADIENT of step %d, slot %d; COMPUTE was of step %d, slot %d",
                its_step, its_slot, step, slot)
        self.losses.append(loss)
        self.numbers.append(json.loads(numbers.decode()) if numbers else {})
        require(len(self.numbers[-1]) <= 32, "%d numbers", len(self.numbers[-1]))
        self.check_padding()
        found = array.array("f", self.gradient)
        require(all(map(math.isfinite, found)), "a gradient of step %d is not finite", step)
        return found

    def apply(self, gradient):
        """sgd; running statistics; variables of factor 0."""
        for variable, offset in zip(self.variables, self.offsets):
            momentum, rate = variable.get("momentum"), self.learning_rate * variable.get("rate_factor", 1)
            for at in range(offset, offset + variable["size"]):
                if momentum is not None:
                    self.parameters[at] = momentum * self.parameters[at] + (1 - momentum) * gradient[at]
                elif rate:
                    self.parameters[at] -= rate * gradient[at]

    def step(self, step, slots=None):
        """All batches of a step one after another, then the update with their mean."""
        gradients = [self.compute(step, slot) for slot in slots or range(self.rows.slots)]
        if len(gradients) > 1:
            gradients = [array.array("f", (sum(each) / len(gradients) for each in zip(*gradients)))]
        self.apply(gradients[0])

    def evaluate(self, step):
        self.send(EVALUATE, step=step)
        message = self.receive(EVALUATION)
        require(message[2] == step, "EVALUATION of step %d", message[2])
        self.evaluations.append(json.loads(message[-1].decode()) if message[-1] else {})
        return self.evaluations[-1]

    def values(self, name, of=None):
        at = [variable["name"] for variable in self.variables].index(name)
        of = self.parameters if of is None else of
        return list(of[self.offsets[at]:self.offsets[at] + self.variables[at]["size"]])

    def end(self, step, code=0):
        """END; returns (stdout, stderr) of the program, which must exit with `code`."""
        self.send(END, step=step)
        return self.wait(code)

    def refuse(self, sentence, code):
        self.send(REFUSED, sentence.encode(), number=code)
        return self.wait(code)

    def wait(self, code):
        out, err = self.process.communicate(timeout=self.timeout)
        self.socket.close()
        require(self.process.returncode == code, "the program exited with %s, not with %s: %s", self.process.returncode,
                code, err.decode(errors="replace"))
        return out.decode(), err.decode()

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def product(shape):
    found = 1
    for each in shape:
        found *= each
    return found


def conversation(command, steps, slots, timeout):
    """Everything a run does to one program, with a rollback in the middle."""
    with FakeTask(command, steps=steps, slots=slots, timeout=timeout, elastic=slots > 1) as task:
        task.begin()
        task.give_initial()
        saved, first = array.array("f", task.parameters), None
        for step in range(steps):
            task.step(step)
            if step == steps // 2:  # lost parameter servers were restored: back to the beginning
                first = array.array("f", task.parameters), task.losses[:]
                task.parameters[:] = saved
                for again in range(step + 1):
                    task.step(again)
                require(array.array("f", task.parameters) == first[0] and
                        task.losses[len(first[1]):] == first[1],
                        "the steps 0 to %d gave other gradients when they came again", step)
        if task.hello.get("evaluates"):
            require("loss" in task.evaluate(steps) or "accuracy" in task.evaluations[-1], "EVALUATION has no loss")
        out, _ = task.end(steps)
        sys.stdout.write(out)
        print("%s: %d variables, %d floats, %d batches, loss %.6g to %.6g, evaluation %s" % (
            task.hello["client"], len(task.variables), task.size, len(task.losses), task.losses[0], task.losses[-1],
            task.evaluations))
    with FakeTask(command, timeout=timeout) as task:  # a worker's program, which gives no initial values
        task.welcome.update(job="worker", is_chief=False)
        task.begin()
        task.compute(0)
        task.refuse("the layout differs", 2)
    with FakeTask(command, timeout=timeout) as task:  # the task dies
        task.begin()
        task.socket.close()
        task.process.communicate(timeout=timeout)
        require(task.process.returncode > 0, "the program exited with %s when its task had ended", task.process.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--slots", type=int, default=1, help="more than 1: an elastic run of micro-batches")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    try:
        conversation(options.command, options.steps, options.slots, options.timeout)
    except (Broken, ProgramFailed, socket.timeout, subprocess.TimeoutExpired) as error:
        sys.exit("%s: %s" % (type(error).__name__, error))


if __name__ == "__main__":
    main()
