#!/usr/bin/env python3
"""Usage: page_test.py watched DISTTF | ended DISTTF | runs DISTTF | long | narrow | over | program

Tests the page of a run in a real browser: watching and controlling a run; constant memory over eight
hours of a run; a narrow screen, use by keyboard, and a page in the background. Also shows one recorded
run, and several together, while they grow; and the numbers of a user's program.
Exit code and pictures: pages.py.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request

import devtools
import fake_run
from pages import Program, expect_quiet, expect_refused, fail, key, leave_picture, main

PATIENCE = devtools.PATIENCE
HOURS = 8
FULL = 4  # hours after which all lists with a maximum length are full; the list of events is the last
MOST_GROWTH_BYTES = 500_000
MOST_GROWTH_NODES = 300


# ------------------------------------------------------------------------------------- a real run

def launch_with_page(program, folder):
    """Starts disttf launch --page and collects its output."""
    return Program([program, "launch", "--page", "--workers=2", "--train_steps=10000000", f"--train_dir={folder}/run",
                    "--save_secs=0", "--eval_every=50", "--debug_delay_ms=10", "--dataset=digits", f"--data_dir={folder}/data"],
                   cwd=folder, env={**os.environ, "XDG_RUNTIME_DIR": folder})


def press(page, words):
    """Presses the button with this accessible name by keyboard, and again if it asks for confirmation."""
    page.wait_for(f"document.querySelector('button[aria-label=\"{words}\"]')")
    for _ in range(2):
        page.value(f"document.querySelector('button[aria-label=\"{words}\"]').focus()")
        for kind in ("keyDown", "keyUp"):
            page.tell("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)
        if not page.value(f"document.querySelector('button[aria-label=\"{words}\"]').hasAttribute('data-asks')"):
            return


STEP = "Number(document.querySelector('#now dd').textContent.split(' ')[0].replaceAll(',', ''))"
STORY = "document.getElementById('story').innerText"


def watched(program):
    folder = tempfile.mkdtemp(prefix="disttf-page-")
    launch = launch_with_page(program, folder)
    browser = devtools.Browser(devtools.find_browser())
    try:
        link = launch.says(r"the run's page is (http://127\.0\.0\.1:\d+/)\?token=[0-9a-f]{32}")
        page = browser.page()
        page.look(1280, 900)
        page.open(link.group(0).split(" is ")[1])
        if page.value("location.href") != link.group(1):
            fail("the token is still in the address: " + page.value("location.href"))
        if page.value("document.cookie") != "":
            fail("scripts can read the cookie")
        page.wait_for("document.querySelectorAll('#tasks tbody tr').length === 3")
        page.wait_for(f"document.querySelector('#loss .u-over') && {STEP} > 20")
        page.wait_for("document.querySelector('#accuracy .u-over')")

        # A visitor without the link sees the run but cannot change it.
        with urllib.request.urlopen(link.group(1) + "v1/access") as reply:
            if json.load(reply) != {"verbs": []}:
                fail("a visitor without the token may change the run")
        expect_refused(link.group(1) + "v1/stop", "POST", 401)
        expect_refused(link.group(1) + "v1/stop", "POST", 421, Host="rebound.example")
        expect_refused(link.group(1) + "v1/run", "GET", 421, Host="rebound.example")

        # Replaces a worker from the page: the list of events shows it, and the curves go on.
        press(page, "Replace: replace worker:1")
        page.wait_for(f"{STORY}.includes('worker:1 was killed by signal 9') && {STORY}.includes('worker:1 was restarted')")
        page.wait_for("[...document.querySelectorAll('#tasks tr')].some((row) => row.dataset.key === 'worker:1' "
                      "&& row.innerText.includes('running') && row.innerText.includes('1'))")
        step = page.value(STEP)
        page.wait_for(f"{STEP} > {step} + 20")
        page.wait_for("document.getElementById('loss').querySelector('[role=img]').getAttribute('aria-label').includes('training')")

        # Requests a checkpoint and waits for it.
        press(page, "Save now: write a checkpoint")
        page.wait_for("document.getElementById('answer').textContent === 'the next step is saved'")
        page.wait_for("document.querySelectorAll('#checkpoints tbody tr').length >= 1")
        leave_picture(page, "watched", whole=True)

        press(page, "Stop the run: save a checkpoint first if it has a directory")
        page.wait_for("document.getElementById('link').dataset.state === 'ended'")
        code = launch.process.wait(PATIENCE)
        if code != 143:
            fail(f"launch has ended with {code}")
        if "?token=" in launch.said.replace(link.group(0), ""):
            fail("the log has a token twice")
        # The end of the stream with the run is no error; any other complaint is.
        page.complaints = [each for each in page.complaints if "ERR_" not in each]
        expect_quiet(page)
    except Exception:
        print(launch.said[-4000:])
        raise
    finally:
        browser.close()
        launch.close()
        shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------ recorded runs

class Recorded:
    """Recorded runs, which may grow, each in a folder of its own, and disttf show --page of them."""

    def __init__(self, program, names):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="disttf-page-"))
        self.process = None
        self.program = program
        self.names = names
        self.at = dict.fromkeys(names, 0)
        self.dice = {name: fake_run.dice(each) for each, name in enumerate(names)}
        for name in names:
            (self.folder / name / "records").mkdir(parents=True)
            self._write(name, fake_run.beginning())

    def _write(self, name, records):
        # Only the chief's records; launch alone knows the tasks as processes.
        lines = [json.dumps(each) + "\n" for each in records if each["kind"] not in ("task", "state")]
        with open(self.folder / name / "records" / "1.jsonl", "a", encoding="utf-8") as file:
            file.write("".join(lines))

    def go_on(self, name, seconds, **more):
        for at in range(self.at[name], self.at[name] + seconds):
            self._write(name, fake_run.second(at, self.dice[name], **more))
        self.at[name] += seconds

    def end(self, name, line):
        self._write(name, [{"kind": "result", "time": fake_run.BEGAN + self.at[name], "step": 40 * self.at[name],
                            "line": line, "accuracy": 0.97}])

    def show(self):
        """Starts disttf show and returns the address of the page."""
        self.process = subprocess.Popen([self.program, "show", *(str(self.folder / each) for each in self.names), "--page"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"the run's page is (http://127\.0\.0\.1:\d+/)\n", line)
        return found.group(1) if found else fail(f"show says {line!r}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE)
        if code != 130:
            fail(f"show has ended with {code}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def ended(program):
    with Recorded(program, ["mnist"]) as recorded, devtools.Browser(devtools.find_browser()) as browser:
        recorded.go_on("mnist", 60)
        page = browser.page()
        page.look(1280, 900)
        page.open(recorded.show())
        page.wait_for(f"{STEP} === {40 * 59 + 30} && document.querySelectorAll('#tasks tbody tr').length === 5")
        page.wait_for("document.querySelector('#loss .u-over') && document.querySelector('#accuracy .u-over')")
        page.wait_for("document.getElementById('link').textContent.startsWith('from its records, up to ')")
        page.wait_for("document.querySelector('header code').textContent.endsWith('/mnist')")
        if page.value("document.querySelectorAll('button').length") != 0:
            fail("there are buttons without an accessible name")
        recorded.go_on("mnist", 1)
        recorded.end("mnist", "MNIST accuracy: 0.9700")
        page.wait_for(f"{STEP} === {40 * 61} && document.getElementById('slowest').textContent === 'MNIST accuracy: 0.9700'")
        finished = "document.getElementById('state').textContent === 'finished'"
        page.wait_for(finished + " && document.querySelector('#tasks .state').textContent === 'done'")
        leave_picture(page, "ended", whole=True)
        page.open(page.value("location.href"))
        page.wait_for(finished + f" && {STEP} === {40 * 61}")
        recorded.interrupt()
        page.wait_for("document.getElementById('link').textContent === 'no longer served'")
        page.complaints = [each for each in page.complaints if "ERR_" not in each]
        expect_quiet(page)


def runs(program):
    with Recorded(program, ["one", "two"]) as recorded, devtools.Browser(devtools.find_browser()) as browser:
        recorded.go_on("one", 60)
        recorded.go_on("two", 30, pace=400)
        page = browser.page()
        page.look(1280, 900)
        page.open(recorded.show())
        steps = "[...document.querySelectorAll('#runs-list tbody tr')].map((row) => row.children[3].textContent).join()"
        page.wait_for(f"{steps} === '2,390,1,190'")
        for chart in ("loss", "accuracy", "rate", "learning"):
            page.wait_for(f"[...document.querySelectorAll('#{chart} .u-legend .u-label')].map((each) => each.textContent)"
                          ".join() === 'step,one,two'")
        said = page.value("document.querySelector('#loss [role=img]').getAttribute('aria-label')")
        if not re.fullmatch(r"one [0-9.]+ at step 2,390; two [0-9.]+ at step 1,190", said):
            fail(f"the curves are {said}")
        if page.value("getComputedStyle(document.getElementById('tasks').parentElement).display") != "none":
            fail("the tasks of no run are shown")
        if len(set(page.value("[...document.querySelectorAll('#loss .u-marker')].slice(1).map((each) => each.style.borderColor + "
                              "each.style.borderTopStyle).join('|')").split("|"))) != 2:
            fail("the curves of two runs look alike")
        recorded.go_on("two", 10, pace=400)
        page.wait_for(f"{steps} === '2,390,1,590'")
        page.wait_for("document.querySelector('#loss [role=img]').getAttribute('aria-label').endsWith(' at step 1,590')")
        page.look(320, 640)
        page.wait_for("document.querySelector('#loss canvas').clientWidth <= 320 && document.documentElement.scrollWidth <= 320")
        leave_picture(page, "runs-320")
        page.look(1280, 900)
        page.wait_for("document.querySelector('#loss canvas').clientWidth > 320")
        leave_picture(page, "page-runs")
        page.open(page.value("document.querySelectorAll('#runs-list a')[1].href"))
        page.wait_for(f"location.search === '?run=1' && {STEP} === 1590 && document.querySelectorAll('#tasks tbody tr').length === 5")
        recorded.go_on("two", 1)
        page.wait_for(f"{STEP} === 1630")
        page.open(page.value("document.querySelector('header a').href"))
        page.wait_for(f"location.search === '' && {steps} === '2,390,1,630'")
        expect_quiet(page)
        recorded.interrupt()
        page.wait_for("document.getElementById('link').dataset.state === 'lost'")


# ------------------------------------------------------------------------------ a simulated run

def stream_of(seconds, gate=None, workers=3):
    """Yields the events of a run; calls `gate` at the end of each second."""
    dice = fake_run.dice()
    number = 0
    yield fake_run.view()
    for record in fake_run.beginning(workers=workers, train_steps=40 * seconds):
        number += 1
        yield fake_run.event(record, number)
    for at in range(seconds):
        yield b"".join(fake_run.event(record, number + each + 1)
                       for each, record in enumerate(fake_run.second(at, dice, workers=workers)))
        number += 1000
        if gate:
            gate(at + 1)


def long():
    """Replays a run of eight hours as fast as the browser can process it."""
    server = fake_run.Server()
    hours = {}
    goes_on = threading.Semaphore(0)
    arrived = threading.Semaphore(0)
    end = threading.Event()

    def gate(second):
        if second % 3600 == 0:
            arrived.release()
            goes_on.acquire()

    def feed():
        yield from stream_of(3600 * HOURS, gate)
        end.wait()

    server.feed = feed
    with devtools.Browser(devtools.find_browser()) as browser:
        page = browser.page()
        page.look(1280, 900)
        page.open(server.url)
        for hour in range(1, HOURS + 1):
            arrived.acquire()
            page.wait_for(f"{STEP} >= {40 * (3600 * hour - 1)}", patience=10 * PATIENCE)
            hours[hour] = page.memory()
            print(f"after {hour} h: {hours[hour][0]} bytes, {hours[hour][1]} nodes", flush=True)
            goes_on.release()
        points = page.value("document.querySelector('#loss .u-legend') !== null")
        expect_quiet(page)
        end.set()
    server.close()
    if not points:
        fail("nothing was drawn")
    if hours[HOURS][0] - hours[FULL][0] > MOST_GROWTH_BYTES:
        fail(f"memory grows: {hours}")
    if hours[HOURS][1] - hours[FULL][1] > MOST_GROWTH_NODES:
        fail(f"nodes grow: {hours}")


FOCUSED = ("(() => { const is = document.activeElement; return is === document.body ? '' : "
           "is.id || is.className || is.textContent.slice(0, 20) || is.tagName; })()")


def narrow():
    """Tests all sizes and themes, use by keyboard alone, and a page in the background."""
    server = fake_run.Server()
    end = threading.Event()

    def feed():
        yield from stream_of(300)
        end.wait()

    server.feed = feed
    with devtools.Browser(devtools.find_browser()) as browser:
        page = browser.page()
        page.look(1280, 900)
        page.open(server.url)
        page.wait_for(f"{STEP} >= 11000 && document.querySelectorAll('#filters img').length === 64")
        for width, height in ((1280, 900), (320, 640)):
            for dark in (False, True):
                page.look(width, height, dark)
                # The drawing follows a change of size or theme in the next frames.
                page.wait_for(f"document.querySelector('#loss canvas').clientWidth <= {width} && new Promise((done) => "
                              "requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
                wide = page.value("document.documentElement.scrollWidth")
                if wide > width:
                    fail(f"the page is wider than a screen of {width}: {wide}")
                leave_picture(page, f"page-{width}-{'dark' if dark else 'light'}")
        reach_everything(page)
        look_away(page)
        expect_quiet(page)
        end.set()
    server.close()


def over():
    """A short run ends: its controls are disabled and say why, and its curves are complete."""
    server = fake_run.Server(verbs=("save", "trace", "update", "stop", "restart"))
    result = threading.Event()
    end = threading.Event()

    def feed():
        for at, record in enumerate(fake_run.beginning()):
            yield fake_run.event(record, at + 1)
        for at in range(40):
            yield fake_run.event({"kind": "step", "time": fake_run.BEGAN + at, "step": at + 1, "loss": 2.3 - at / 40,
                                  "learning_rate": 0.000123456 * (1 - at / 1000), "images": 100, "images_per_second": 1e6},
                                 100 + at)
        result.wait()
        yield fake_run.event({"kind": "result", "time": fake_run.BEGAN + 40, "step": 40, "line": "MNIST accuracy: 0.97",
                              "accuracy": 0.97}, 200)
        end.wait()

    server.feed = feed
    with devtools.Browser(devtools.find_browser()) as browser:
        page = browser.page()
        page.look(1280, 900)
        page.open(server.url)
        page.wait_for("document.querySelector('#learning .u-over') && document.querySelectorAll('#tasks button').length === 10")
        if page.value("document.querySelectorAll('button:disabled').length") != 0:
            fail("buttons are disabled while the run trains")
        # Beside the curves there is room for the longest label and its ticks.
        room = page.value("document.querySelector('#learning .u-over').offsetLeft")
        label = page.value("(() => { const ink = document.createElement('canvas').getContext('2d');"
                           "ink.font = '12px system-ui'; return ink.measureText('0.000124').width; })()")
        if room < label + 15:
            fail(f"the labels of the learning rate have {room} pixels; one needs {label} and 15")
        leave_picture(page, "over-before", whole=True)
        result.set()
        page.wait_for("document.querySelectorAll('button').length === document.querySelectorAll('button:disabled').length")
        if "The run is over" not in page.value("document.getElementById('answer').textContent"):
            fail("the page does not say why the buttons are disabled")
        leave_picture(page, "over", whole=True)
        # However long a run is, the curve keeps its first step.
        first = page.value("import('/state.js').then(({Series}) => { const series = new Series();"
                           "for (let step = 1; step <= 9000; ++step) series.push(step, step, 1);"
                           "return [series.steps[0], series.steps.at(-1), series.length <= 2000]; })")
        if first != [1, 9000, True]:
            fail(f"of 9000 steps a curve has first, last, and few enough: {first}")
        expect_quiet(page)
        end.set()
    server.close()


def of_program(record):
    """Returns the record as it is of a run of a user's program, which chooses the names of its numbers."""
    if record["kind"] == "run":
        return {**record, "model": "program", "classes": []}
    if record["kind"] == "step":
        return {**record, "numbers": {"norm": record["loss"] / 2, "<b>f1</b>": 0.5, "__proto__": 1, "loss": 9, "bad": None}}
    if record["kind"] == "evaluation":
        return {**{key: value for key, value in record.items() if key != "test"},
                "validation": {**record["validation"], "numbers": {"<b>f1</b>": 0.75}}}
    return record


def program():
    """The numbers of a user's program have charts of their own, however they are named."""
    server = fake_run.Server()
    end = threading.Event()

    def feed():
        dice = fake_run.dice()
        number = 0
        for record in [*fake_run.beginning(), *(each for at in range(60) for each in fake_run.second(at, dice))]:
            if record["kind"] not in ("confusion", "picture"):
                number += 1
                yield fake_run.event(of_program(record), number)
        end.wait()

    server.feed = feed
    with devtools.Browser(devtools.find_browser()) as browser:
        page = browser.page()
        page.look(1280, 900)
        page.open(server.url)
        titles = "[...document.querySelectorAll('#curves h2')].map((each) => each.textContent).join()"
        page.wait_for(f"{titles} === 'Loss,Accuracy,Rows a second,Learning rate,norm,<b>f1</b>,__proto__'")
        page.wait_for("document.querySelectorAll('#curves .u-over').length === 7")
        said = "[...document.querySelectorAll('#curves [role=img]')].map((each) => each.getAttribute('aria-label'))"
        page.wait_for(f"{said}[5] === 'training 0.5 at step 2,390; validation 0.75 at step 2,360'")
        page.wait_for(f"!{said}[0].startsWith('training 9 ')")
        page.wait_for("document.getElementById('now').textContent.includes('rows a second')")
        for name in ("confusion", "wrong", "filters"):
            if page.value(f"document.getElementById('{name}').checkVisibility()"):
                fail(f"{name}, which a program does not have, is shown")
        leave_picture(page, "program", whole=True)
        page.look(320, 640)
        page.wait_for("document.querySelector('#loss canvas').clientWidth <= 320 && document.documentElement.scrollWidth <= 320")
        expect_quiet(page)
        end.set()
    server.close()


def reach_everything(page):
    """Reaches every chart's table, and everything that scrolls, by Tab and Enter."""
    page.value("document.activeElement.blur()")
    reached = set()
    for _ in range(80):
        key(page, "Tab", 9)
        reached.add(page.value(FOCUSED))
        if page.value("document.activeElement.tagName === 'SUMMARY' && !document.activeElement.parentElement.open"):
            key(page, "Enter", 13, "\r")
    for name in ("skip", "loss-log", "story", "checkpoints", "confusion"):
        if name not in reached:
            fail(f"{name} cannot be reached by the keyboard; only {sorted(reached)}")
    for chart in ("loss", "accuracy", "rate", "learning"):
        page.wait_for(f"document.querySelectorAll('#{chart} details[open] tbody tr').length > 5")
    page.wait_for("document.querySelectorAll('#stages-table tbody tr').length === 5")
    said = page.value("document.getElementById('quiet').textContent")
    if said.count("\n") > 0:
        fail(f"a screen reader gets too many announcements: {said}")


def look_away(page):
    page.value("Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
               "document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for("document.getElementById('link').textContent === 'paused'")
    page.value("Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
               "document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for("document.getElementById('link').textContent === 'live'")


if __name__ == "__main__":
    main({"watched": watched, "ended": ended, "runs": runs, "long": long, "narrow": narrow, "over": over,
          "program": program})
