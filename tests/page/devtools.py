"""A headless Chromium, driven over its DevTools protocol with the standard library alone.

A thread reads the browser's messages. Page.complaints collects all errors of a page (console errors, exceptions,
blocked content).
"""
import base64
import json
import os
import queue
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

PATIENCE = 60  # seconds: far more than any machine needs
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    """Returns the path of the browser, or None."""
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    return None


class WebSocket:
    """The client of a WebSocket on this machine (RFC 6455): text frames, complete messages."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port))
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        self.socket.sendall((f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self._more()
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"no WebSocket: {head!r}")

    def _more(self):
        got = self.socket.recv(65536)
        if not got:
            raise EOFError("the browser has closed the connection")
        self.bytes += got

    def _take(self, size):
        while len(self.bytes) < size:
            self._more()
        taken, self.bytes = self.bytes[:size], self.bytes[size:]
        return taken

    def send(self, text):
        data = text.encode()
        mask = secrets.token_bytes(4)
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x81, 0x80 | size)
        elif size < 65536:
            head = struct.pack(">BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x81, 0x80 | 127, size)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def receive(self):
        message = b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            data = self._take(size)
            code = first & 0x0F
            if code in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()
            elif code == 8:
                raise EOFError("the browser has closed the connection")

    def close(self):
        self.socket.close()


class Page:
    """One tab."""

    def __init__(self, url):
        self.socket = WebSocket(url)
        self.answers = {}
        self.waiting = threading.Condition()
        self.number = 0
        self.complaints = []
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(domain + ".enable")

    def _read(self):
        try:
            while True:
                message = json.loads(self.socket.receive())
                with self.waiting:
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self._hear(message["method"], message["params"])
                    self.waiting.notify_all()
        except (EOFError, OSError, ValueError):
            with self.waiting:
                self.ended = True
                self.waiting.notify_all()

    def _hear(self, method, params):
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.complaints.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

    def tell(self, method, **params):
        """Sends a command and returns the browser's response."""
        with self.waiting:
            self.number += 1
            number = self.number
            self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
            if not self.waiting.wait_for(lambda: number in self.answers or self.ended, PATIENCE):
                raise TimeoutError(f"{method} was not answered")
            if number not in self.answers:
                raise EOFError("the browser has ended")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, expression):
        """Returns the value of a JavaScript expression; awaits a promise."""
        answer = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {json.dumps(answer['exceptionDetails'])[:800]}")
        return answer["result"].get("value")

    def wait_for(self, expression, patience=PATIENCE):
        """Waits until the expression is true in the page; checks it on every drawn frame."""
        script = ("new Promise((done) => { const end = performance.now() + %d;"
                  "const look = () => { let is = false; try { is = (%s); } catch (error) {}"
                  "if (is) done(true); else if (performance.now() > end) done(false);"
                  "else setTimeout(look, 50); }; look(); })") % (1000 * patience, expression)
        with self.waiting:
            self.number += 1
            number = self.number
            self.socket.send(json.dumps({"id": number, "method": "Runtime.evaluate",
                                         "params": {"expression": script, "returnByValue": True, "awaitPromise": True}}))
            self.waiting.wait_for(lambda: number in self.answers or self.ended, patience + PATIENCE)
            answer = self.answers.pop(number, {})
        is_true = answer.get("result", {}).get("result", {}).get("value")
        if is_true is not True:
            raise AssertionError(f"was not to be seen within {patience} s: {expression}\n{self.text()[:4000]}")

    def text(self):
        return self.value("document.body.innerText")

    def open(self, url):
        self.tell("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def look(self, width, height, dark=False, scale=1):
        """Sets the screen's size, and a light or dark theme."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.tell("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, whole=False):
        """Writes a screenshot as PNG."""
        answer = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def memory(self):
        """Returns the used bytes of the page's JavaScript heap, and the number of its nodes."""
        self.tell("HeapProfiler.collectGarbage")
        counts = self.tell("Memory.getDOMCounters")
        return self.tell("Runtime.getHeapUsage")["usedSize"], counts["nodes"]


class Browser:
    """A browser process with a profile of its own."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="disttf-browser-")
        flags = ["--headless=new", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu",
                 "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--mute-audio", "--force-color-profile=srgb",
                 "--hide-scrollbars", f"--user-data-dir={self.folder}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses to run as root with a sandbox
        self.process = subprocess.Popen([program, *flags, "about:blank"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        lines = queue.Queue()

        def read():
            for line in self.process.stderr:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        said = ""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                line = lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.close()
                raise RuntimeError(f"{program} does not come up:\n{said}")
            said += line
            if line.startswith("DevTools listening on "):
                break
        self.address = urllib.parse.urlsplit(line.split()[-1]).netloc

    def page(self):
        """Opens a new tab."""
        request = urllib.request.Request(f"http://{self.address}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request) as reply:
            return Page(json.load(reply)["webSocketDebuggerUrl"])

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
