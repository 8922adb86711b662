#!/usr/bin/env python3
"""A user's program that speaks docs/program_protocol.md: softmax regression on made-up rows.

Usage: program_client.py [KEY=VALUE...]

Without packages: what a process test needs in order to see a task and its program at work. A
gradient depends on the parameters, the step and the slot alone. With these words it misbehaves:

  kill=STEP         kills itself before it answers this step
  exit=STEP:CODE    exits with CODE there
  fail=STEP:TEXT    sends FAILED with the text there, and exits with 1
  hang=STEP         does not answer it
  packet=STEP:N     sends an empty packet there, with N descriptors
  flood=STEP        asks for rows there, again and again, and reads no answer
  nan=STEP          answers it with a gradient that is not finite
  nan=STEP:loss     with such a loss, too
  die=STEP          kills itself once it has answered this step
  wait=STEP:FIFO    does not answer it before another process has opened the FIFO to write
  moves=1           gives the present parameters as initial ones once it has computed, as a model
                    does whose parameters are those of the run
  once=FILE         does so only if it can create FILE
  inputs=N          another layout: N inputs instead of 4
  welcome=FILE      writes WELCOME's text there
  count=N           another number of rows in HELLO
  threads=N         another fingerprint: N threads
  opens=FIFO        opens it to write, before it joins, if the file of `once` is there
  saves=FILE        writes the parameters there at the end
  slow=SECONDS      takes so long for each batch
  rows=FILE         appends a line for each batch: its process, step and slot, and the batch's rows
"""

import array
import json
import math
import mmap
import os
import random
import signal
import socket
import struct
import sys
import time

HEADER = struct.Struct("<4sHHIIQQQQdQ")
ROWS = 600
CLASSES = 3
ALIGNED = 16  # floats

(HELLO, VARIABLE, LAYOUT, INITIAL, GRADIENT, EVALUATION) = range(1, 7)
(ASK_ROWS, FAILED) = (7, 8)
(WELCOME, GIVE_INITIAL, COMPUTE, EVALUATE) = range(65, 69)
(END, REFUSED) = (70, 71)


class Task:
    """The other end of the socket."""

    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["DISTTF_PROGRAM_FD"]))

    def send(self, kind, body=b"", step=0, slot=0, count=0, value=0.0):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        header = HEADER.pack(b"DTP1", kind, 0, len(body), 0, step, slot, 0, count, value, 0)
        self.socket.send(header + body)

    def receive(self):
        """Returns (kind, number, step, slot, body, descriptors); exits if the task has ended."""
        packet, ancillary, _, _ = self.socket.recvmsg(HEADER.size + 65536, socket.CMSG_SPACE(8))
        if not packet:
            sys.exit("program_client: the task has ended")
        _, kind, _, size, number, step, slot, _, _, _, _ = HEADER.unpack_from(packet)
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        return kind, number, step, slot, packet[HEADER.size:HEADER.size + size], descriptors


def row(number, inputs):
    """The inputs and the class of a row."""
    draw = random.Random(number)
    values = [draw.gauss(0, 1) for _ in range(inputs)]
    return values, max(range(CLASSES), key=lambda each: values[each % inputs] + 0.1 * each)


def floats_of(descriptor, is_written):
    access = mmap.PROT_READ | (mmap.PROT_WRITE if is_written else 0)
    mapped = mmap.mmap(descriptor, os.fstat(descriptor).st_size, mmap.MAP_SHARED, access)
    return memoryview(mapped).cast("f")


class Softmax:
    def __init__(self, inputs):
        self.inputs = inputs
        self.bias_at = -(-inputs * CLASSES // ALIGNED) * ALIGNED

    def outputs(self, parameters, values):
        logits = [parameters[self.bias_at + each] +
                  sum(values[i] * parameters[i * CLASSES + each] for i in range(self.inputs))
                  for each in range(CLASSES)]
        highest = max(logits)
        shares = [math.exp(logit - highest) for logit in logits]
        return [share / sum(shares) for share in shares]

    def compute(self, parameters, gradient, rows):
        """Writes the mean gradient of the rows, and returns the mean loss."""
        sums = [0.0] * (self.bias_at + CLASSES)
        loss = 0.0
        for number in rows:
            values, label = row(number, self.inputs)
            shares = self.outputs(parameters, values)
            loss -= math.log(max(shares[label], 1e-30))
            for each in range(CLASSES):
                error = shares[each] - (each == label)
                sums[self.bias_at + each] += error
                for i in range(self.inputs):
                    sums[i * CLASSES + each] += error * values[i]
        for at, total in enumerate(sums):
            gradient[at] = total / len(rows)
        return loss / len(rows)

    def evaluate(self, parameters, rows):
        loss, right = 0.0, 0
        for number in rows:
            values, label = row(number, self.inputs)
            shares = self.outputs(parameters, values)
            loss -= math.log(max(shares[label], 1e-30))
            right += shares.index(max(shares)) == label
        return {"loss": loss / len(rows), "accuracy": right / len(rows)}


class Behaviour:
    """What the words ask for at a step."""

    def __init__(self, words):
        self.words = dict(word.split("=", 1) for word in words)

    def asks(self, name, step):
        """The text after the step, if `name` is asked for at this step; else None."""
        at, _, text = self.words.get(name, "").partition(":")
        if at == "" or int(at) != step:
            return None
        if "once" in self.words:
            try:
                os.close(os.open(self.words["once"], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            except FileExistsError:
                return None
        return text

    def before_answer(self, task, step):
        if self.asks("kill", step) is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        if (code := self.asks("exit", step)) is not None:
            sys.exit(int(code))
        if (text := self.asks("fail", step)) is not None:
            task.send(FAILED, text.encode())
            sys.exit(1)
        if self.asks("hang", step) is not None:
            time.sleep(1000)
        if (count := self.asks("packet", step)) is not None:
            descriptors = array.array("i", [0] * int(count))
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)] if descriptors else []
            task.socket.sendmsg([b""], ancillary)
        if self.asks("flood", step) is not None:
            while True:
                task.send(ASK_ROWS, step=step, count=ROWS)
        if (fifo := self.asks("wait", step)) is not None:
            with open(fifo, "rb"):
                pass

    def before_join(self):
        if "opens" in self.words and os.path.exists(self.words["once"]):
            with open(self.words["opens"], "wb"):
                pass

    def note(self, step, slot, rows):
        if "rows" in self.words:
            file = os.open(self.words["rows"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
            line = " ".join(map(str, (os.getpid(), step, slot, *rows))) + "\n"
            os.write(file, line.encode())  # one write is whole
            os.close(file)


def main():
    behaviour = Behaviour(sys.argv[1:])
    inputs = int(behaviour.words.get("inputs", 4))
    model = Softmax(inputs)
    task = Task()
    behaviour.before_join()
    task.send(HELLO, {"protocol": 1, "client": "program_client.py", "data": "made-up",
                      "rows": int(behaviour.words.get("count", ROWS)), "evaluates": True,
                      "fingerprint": {"threads": behaviour.words.get("threads", "1")}})
    task.send(VARIABLE, {"name": "w", "shape": [inputs, CLASSES]})
    task.send(VARIABLE, {"name": "b", "shape": [CLASSES], "decays": False})
    task.send(LAYOUT, count=2)
    has_moved = False
    while True:
        kind, number, step, slot, body, descriptors = task.receive()
        if kind == WELCOME:
            if "welcome" in behaviour.words:
                with open(behaviour.words["welcome"], "wb") as file:
                    file.write(body)
            parameters = floats_of(descriptors[0], False)
            gradient = floats_of(descriptors[1], True)
        elif kind == GIVE_INITIAL:
            draw = random.Random(1)
            for at in range(inputs * CLASSES):
                gradient[at] = parameters[at] if has_moved else draw.gauss(0, 0.1)
            task.send(INITIAL)
        elif kind == COMPUTE:
            has_moved = "moves" in behaviour.words
            behaviour.before_answer(task, step)
            rows = struct.unpack("<%dI" % (len(body) // 4), body)
            behaviour.note(step, slot, rows)
            time.sleep(float(behaviour.words.get("slow", 0)))
            loss = model.compute(parameters, gradient, rows)
            if (text := behaviour.asks("nan", step)) is not None:
                gradient[model.bias_at] = math.nan
                loss = math.nan if text == "loss" else loss
            task.send(GRADIENT, {"seen": float(rows[0])}, step, slot, value=loss)
            if behaviour.asks("die", step) is not None:
                os.kill(os.getpid(), signal.SIGKILL)
        elif kind == EVALUATE:
            task.send(EVALUATION, model.evaluate(parameters, range(ROWS)), step)
        elif kind == END:
            if "saves" in behaviour.words:
                with open(behaviour.words["saves"], "w", encoding="ascii") as file:
                    file.write(json.dumps(list(parameters[:model.bias_at + CLASSES])))
            return
        elif kind == REFUSED:
            print("program_client: " + body.decode(), file=sys.stderr)
            sys.exit(number)


if __name__ == "__main__":
    main()
