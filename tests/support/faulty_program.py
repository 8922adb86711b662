#!/usr/bin/env python3
"""A client of docs/program_protocol.md with one fault, for the tests of `disttf verify`.

Usage: faulty_program.py FAULT

The program is that of program_client.py. FAULT:

  none              no fault
  protocol          HELLO has another version
  initial           an initial value is not finite
  loss              a loss is not finite
  repeat            computes other bits if the batch is the one before
  back              computes other bits if the step is earlier than the one before
  evaluation        computes other bits once it has evaluated
  silent            HELLO says that it evaluates; EVALUATION has no numbers
  padding           writes between two variables
  end               exits with 3 at the end
  process           its last variable depends on the process
  layout            another process has another shape
  slot              exits with 5 when it is asked for another slot than 0
  refusal           exits with 1 when it is refused
  socket            waits after the end of its socket, unless it is a spare
  spare             waits after the end of its socket, if it is a spare
  hang              does not answer a step
"""

import math
import os
import struct
import sys
import time

import program_client as client


def wait():
    while True:
        time.sleep(1000)


class Program:
    def __init__(self, fault):
        self.fault = fault
        self.model = client.Softmax(4)
        self.task = client.Task()
        self.before = (-1, 0)  # step and slot
        self.has_evaluated = False
        self.parameters = self.gradient = None

    def tell(self):
        self.task.send(client.HELLO, {"protocol": 2 if self.fault == "protocol" else 1,
                                      "client": "faulty_program.py", "data": "made-up",
                                      "rows": client.ROWS, "evaluates": True,
                                      "fingerprint": {"threads": "1"}})
        inputs = 4
        if self.fault == "layout":
            try:
                os.close(os.open("first", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            except FileExistsError:
                inputs = 5
        self.task.send(client.VARIABLE, {"name": "w", "shape": [inputs, client.CLASSES]})
        self.task.send(client.VARIABLE, {"name": "b", "shape": [client.CLASSES], "decays": False})
        self.task.send(client.LAYOUT, count=2)

    def is_wrong(self, step, slot):
        return {"repeat": (step, slot) == self.before, "back": step < self.before[0],
                "evaluation": self.has_evaluated}.get(self.fault, False)

    def compute(self, step, slot, body):
        if self.fault == "hang":
            wait()
        if self.fault == "slot" and slot != 0:
            sys.exit(5)
        rows = struct.unpack("<%dI" % (len(body) // 4), body)
        loss = self.model.compute(self.parameters, self.gradient, rows)
        if self.is_wrong(step, slot):
            self.gradient[self.model.bias_at + 1] += 1
        if self.fault == "process":
            self.gradient[self.model.bias_at + 2] = os.getpid()
        if self.fault == "padding":
            self.gradient[self.model.bias_at + client.CLASSES] = 0.5
        self.before = (step, slot)
        self.task.send(client.GRADIENT, step=step, slot=slot,
                       value=math.nan if self.fault == "loss" else loss)

    def evaluate(self, step):
        self.has_evaluated = True
        found = self.model.evaluate(self.parameters, range(client.ROWS))
        self.task.send(client.EVALUATION, b"" if self.fault == "silent" else found, step)

    def run(self):
        self.tell()
        while True:
            kind, number, step, slot, body, descriptors = self.task.receive()
            if kind == client.WELCOME:
                self.parameters = client.floats_of(descriptors[0], False)
                self.gradient = client.floats_of(descriptors[1], True)
            elif kind == client.GIVE_INITIAL:
                self.gradient[0] = math.inf if self.fault == "initial" else 0.5
                self.task.send(client.INITIAL)
            elif kind == client.COMPUTE:
                self.compute(step, slot, body)
            elif kind == client.EVALUATE:
                self.evaluate(step)
            elif kind == client.END:
                return 3 if self.fault == "end" else 0
            elif kind == client.REFUSED:
                return 1 if self.fault == "refusal" else number


def main():
    fault = sys.argv[1]
    try:
        return Program(fault).run()
    except SystemExit:
        is_spare = "DISTTF_PROGRAM_SPARE" in os.environ
        if (fault == "socket" and not is_spare) or (fault == "spare" and is_spare):
            wait()
        raise


if __name__ == "__main__":
    sys.exit(main())
