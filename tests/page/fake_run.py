"""A simulated run: records like those of a chief and a launch, and a server that streams them as fast as
they are read. For cases that a real run reaches after hours."""
import base64
import functools
import http.server
import json
import math
import pathlib
import random
import struct
import threading
import zlib

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
BEGAN = 1_790_000_000.0
PARAMETERS = 79_510


def png(width, height, pixels):
    """Returns a PNG of grey pixels, row by row."""
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(pixels[row * width:(row + 1) * width]) for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(rows, 9)) + part(b"IEND", b""))


@functools.lru_cache(maxsize=256)
def pixels_of(index, variant):
    """Returns one of a few prepared pictures, because drawing takes longer than showing."""
    dice = random.Random(1000 * index + variant)
    pixels = [min(255, max(0, int(128 + 90 * math.sin(index + x / 4) * math.cos(y / 4) + dice.gauss(0, 20))))
              for y in range(28) for x in range(28)]
    return base64.b64encode(png(28, 28, pixels)).decode()


def picture(dice, step, kind, index):
    label, answer = dice.sample("0123456789", 2)
    return {"kind": "picture", "time": BEGAN + step / 4, "step": step, "set": kind, "index": index, "label": label,
            "answer": answer, "png": pixels_of(index, dice.randrange(2))}


def beginning(workers=3, ps=2, train_steps=20_000):
    """Returns the records before the first step."""
    settings = {"train_steps": train_steps, "batch_size": 100, "learning_rate": 0.01, "optimizer": "adam",
                "hidden_units": [100], "sync_replicas": True, "seed": 1, "eval_every": 200, "wire_dtype": "f32"}
    yield {"kind": "run", "time": BEGAN, "source": "chief", "dataset": "MNIST", "model": "mlp",
           "parameters": PARAMETERS, "train_steps": train_steps, "batch_size": 100, "trainers": workers, "ps": ps,
           "mode": "sync", "classes": list("0123456789"), "settings": settings, "step": 0}
    yield {"kind": "state", "time": BEGAN, "state": "training"}
    names = [f"ps:{each}" for each in range(ps)] + [f"worker:{each}" for each in range(workers)]
    for at, name in enumerate(names):
        yield {"kind": "task", "time": BEGAN, "task": name, "address": f"127.0.0.1:{40000 + at}", "state": "running",
               "pid": 4700 + at, "restarts": 0, "since": BEGAN}
        yield {"kind": "event", "time": BEGAN, "level": "info", "task": name, "what": "started",
               "text": f"{name} was started at 127.0.0.1:{40000 + at}."}


def second(at, dice, workers=3, ps=2, steps_a_second=40, pace=900):
    """Returns the records of the `at`th second: four steps, a log line of each task, the straggler. `pace`: the number
    of steps in which the loss falls to a third."""
    now = BEGAN + at
    for quarter in range(4):
        step = int((at + quarter / 4) * steps_a_second)
        loss = 0.05 + 2.2 * math.exp(-step / pace) + 0.02 * dice.random()
        yield {"kind": "step", "time": now + quarter / 4, "step": step, "loss": round(loss, 5), "learning_rate": 0.01,
               "images": step * 100 * workers, "images_per_second": steps_a_second * 100 * workers * (1 + 0.05 * dice.random())}
    step = at * steps_a_second
    for each in range(ps):
        size = PARAMETERS // ps
        yield {"kind": "metrics", "time": now, "task": f"ps:{each}", "host": "one", "pid": 4700 + each, "isa": "avx2",
               "threads": 1, "step": step, "pushes": step * workers, "dropped": 0, "rss_bytes": 9_000_000,
               "cpu_seconds": at * 0.1, "bytes_sent": step * 300_000, "bytes_received": step * 300_000,
               "stages": {"apply": 0.0004}, "range": [each * size, PARAMETERS if each + 1 == ps else (each + 1) * size],
               "generation": 1, "applied": step * workers, "repeats": 0}
    for each in range(workers):
        backward = 0.009 * (1.4 if each == workers - 1 else 1.0)
        yield {"kind": "metrics", "time": now, "task": f"worker:{each}", "host": "one", "pid": 4710 + each,
               "isa": "avx2", "threads": 1, "step": step, "pushes": step, "dropped": 0, "rss_bytes": 61_000_000,
               "cpu_seconds": at * 0.9, "bytes_sent": step * 320_000, "bytes_received": step * 320_000,
               "stages": {"pull": 0.0011, "load": 0.0004, "forward": 0.005, "backward": backward, "push": 0.0012,
                          "wait": 0.0182 - 0.0077 - backward + 0.0004 * dice.random()}, "staleness": 0}
    slow = f"worker:{workers - 1}"
    yield {"kind": "frontier", "time": now, "step": step, "steps": steps_a_second, "step_seconds": 0.0245,
           "stages": [{"stage": "backward", "task": slow, "seconds": 0.0125, "share": 0.51},
                      {"stage": "forward", "task": slow, "seconds": 0.005, "share": 0.2},
                      {"stage": "push", "task": "worker:0", "seconds": 0.0012, "share": 0.05}],
           "slowest": {"task": slow, "stage": "backward", "slower": 0.4}}
    if at % 10 == 9 and at < 600 or at % 60 == 59:
        yield from evaluation(now, step, dice, pace)
    if at % 30 == 29:
        yield {"kind": "checkpoint", "time": now, "step": step, "name": f"step-{step:010}", "bytes": 956_000,
               "seconds": 0.012, "weights_sha256": f"{dice.getrandbits(256):064x}"}
        yield {"kind": "event", "time": now, "level": "info", "what": "checkpoint", "text": f"Step {step} was saved."}
    if at % 120 == 60:
        yield {"kind": "event", "time": now, "level": "warning", "task": slow, "what": "killed",
               "text": f"{slow} was killed by SIGKILL and starts again."}
        yield {"kind": "event", "time": now + 0.5, "level": "info", "task": slow, "what": "joined",
               "text": f"{slow} trains again from step {step}."}


def evaluation(now, step, dice, pace):
    good = 0.98 - 0.9 * math.exp(-step / pace / 0.78)
    result = {"loss": 0.06 + 2 * math.exp(-step / pace), "accuracy": good}
    yield {"kind": "evaluation", "time": now, "step": step, "last": False, "validation": result,
           "test": {"loss": result["loss"] * 1.03, "accuracy": good - 0.003}}
    for label in range(10):
        wrong = [dice.randrange(0, 8) for _ in range(10)]
        wrong[label] = 1000 - sum(wrong)
        yield {"kind": "confusion", "time": now, "step": step, "class": label, "counts": wrong}
    for index in range(25):
        yield picture(dice, step, "wrong", index)
    for index in range(64):
        yield picture(dice, step, "filters", index)


class Server:
    """Serves web/ and one stream that a test feeds, without delays."""

    def __init__(self, verbs=()):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.split("?")[0]
                if path == "/v1/stream":
                    server.stream(self)
                elif path == "/v1/access":
                    self.reply("application/json", json.dumps({"verbs": list(verbs)}).encode())
                else:
                    self.file("index.html" if path == "/" else path.rsplit("/", 1)[-1])

            def file(self, name):
                found = [each for each in WEB.rglob(name) if each.suffix in TYPES]
                if found:
                    self.reply(TYPES[found[0].suffix], found[0].read_bytes())
                else:
                    self.send_error(404)

            def reply(self, kind, body):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.feed = None  # yields the events of the next stream
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stream(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        try:
            for text in self.feed():
                handler.wfile.write(text)
            handler.wfile.flush()
        except OSError:
            pass  # the page was closed
        handler.close_connection = True

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def event(record, number):
    return f"id: {number}\ndata: {json.dumps(record, separators=(',', ':'))}\n\n".encode()


def view(number=0):
    return f"id: {number}\nevent: view\ndata: {json.dumps({'id': number})}\n\n".encode()


def dice(seed=1):
    return random.Random(seed)
