#!/usr/bin/env python3
"""Usage: serve_test.py drawn DISTTF RECIPE MNIST | live DISTTF | table DISTTF | coloured DISTTF | narrow DISTTF

Tests the page of disttf serve in a real browser, with models that the test trains. `drawn`: the ten digits
are drawn by mouse, and uploaded as pictures; MNIST is a folder; if it does not exist, the model is trained on
the built-in digits. `live`: a run trains while a digit is drawn, and its checkpoints arrive. `table`: a form
shows classes and numbers. `coloured`: pictures of another kind, from files. `narrow`: all sizes and themes,
use by keyboard alone, files that are not pictures.
Exit code and pictures: pages.py.
"""
import gzip
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import urllib.request
import zlib

import devtools
import digits
from pages import Program, expect_quiet, expect_refused, fail, key, leave_picture, main

PATIENCE = devtools.PATIENCE
RIGHT_OF_TEN = 9  # the accuracy that the documents promise
TOLD = "document.getElementById('bars').getAttribute('aria-busy') === 'false'"
BEST = "document.getElementById('best').textContent"


def train(program, folder, name, *words, patience=10 * PATIENCE):
    """Trains a model and returns the folder of its checkpoints."""
    done = subprocess.run([program, "launch", "--workers=2", f"--train_dir={folder}/{name}", "--log_level=warning", *words],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience, cwd=folder, check=False)
    if done.returncode != 0:
        fail(f"training has ended with {done.returncode}:\n{done.stderr}")
    return f"{folder}/{name}"


class Serve(Program):
    """Runs disttf serve on a directory, which may not exist yet, and has its address."""

    def __init__(self, program, directory):
        super().__init__([program, "serve", directory, "--port=0", "--host=127.0.0.1", "--name=model"])
        try:
            self.url = self.says(r"serving at (http://127\.0\.0\.1:\d+/)").group(1)
        except AssertionError:
            self.close()
            raise


def open_page(browser, url, width=1280, height=900):
    page = browser.page()
    page.look(width, height)
    page.open(url)
    page.wait_for("document.getElementById('link').textContent === 'live' && !document.getElementById('asking').hidden")
    return page


# ------------------------------------------------------------------------------------------ drawing

def mouse(page, kind, x, y):
    page.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
              buttons=1 if kind != "mouseReleased" else 0, clickCount=0 if kind == "mouseMoved" else 1)


def draw(page, strokes, size=0.8, at=(0.1, 0.1), between=None):
    """Draws strokes (0 to 100) on a part of the field; calls `between` before the last point."""
    field = page.value("(() => { const pad = document.getElementById('pad'); pad.scrollIntoView({block: 'center'});"
                       "const is = pad.getBoundingClientRect(); return [is.left, is.top, is.width]; })()")

    def place(point):
        return [field[axis] + field[2] * (at[axis] + size * point[axis] / 100) for axis in (0, 1)]

    for number, stroke in enumerate(strokes):
        mouse(page, "mousePressed", *place(stroke[0]))
        for begin, end in zip(stroke, stroke[1:]):
            for part in (0.25, 0.5, 0.75, 1):
                mouse(page, "mouseMoved", *place([a + part * (b - a) for a, b in zip(begin, end)]))
        if between and number == len(strokes) - 1:
            between()
        mouse(page, "mouseReleased", *place(stroke[-1]))


def answer(page):
    """Returns the class that the page shows, once no request is in flight."""
    page.wait_for(TOLD)
    return page.value(BEST).split(",")[0]


def clear(page):
    page.value("document.getElementById('clear').click()")
    page.wait_for(f"{BEST} === 'nothing yet'")


def pixels(page):
    """Returns the model's input as bytes."""
    return bytes(page.value("(() => { const seen = document.getElementById('picture');"
                            "const all = seen.getContext('2d').getImageData(0, 0, seen.width, seen.height).data;"
                            "return Array.from(all).filter((_, at) => at % 4 === 0); })()"))


def expect_as_mnist(page):
    """Expects ink in a box of 20, with its centre of mass in the middle pixel, as in MNIST."""
    seen = pixels(page)
    inked = [(at % 28, at // 28, value) for at, value in enumerate(seen) if value > 25]
    wide = max(x for x, _, _ in inked) - min(x for x, _, _ in inked) + 1
    high = max(y for _, y, _ in inked) - min(y for _, y, _ in inked) + 1
    if not 18 <= max(wide, high) <= 22:
        fail(f"the ink is {wide} by {high} pixels")
    mass = sum(seen)
    for axis in (0, 1):
        middle = sum(((at % 28, at // 28)[axis] + 0.5) * value for at, value in enumerate(seen)) / mass
        if abs(middle - 14.5) > 0.5:
            fail(f"the centre of mass is at {middle}")


def draw_all(page):
    told = {}
    for digit, strokes in digits.STROKES.items():
        draw(page, strokes)
        told[digit] = answer(page)
        expect_as_mnist(page)
        leave_picture(page, f"serve-{digit}")
        if digit != 9:
            clear(page)
    right = sum(told[digit] == str(digit) for digit in told)
    print(f"drawn digits: {right} of 10 right: {told}", flush=True)
    if right < RIGHT_OF_TEN:
        fail(f"only {right} of ten digits are recognized: {told}")
    return told


def expect_one_at_a_time(page):
    """Expects many requests, but none while another is in flight; the next one sends the picture of that time."""
    times = page.value("performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/infer'))"
                       ".map((each) => [each.startTime, each.responseEnd])")
    if len(times) < 20:
        fail(f"the model was asked {len(times)} times while ten digits were drawn")
    for before, after in zip(times, times[1:]):
        if after[0] < before[1]:
            fail(f"a request was sent at {after[0]} while one was under way until {before[1]}")


def expect_size_to_be_nothing(page):
    """Expects the same input for a digit at any position and size."""
    seen = []
    for size, at in ((0.9, (0.05, 0.05)), (0.4, (0.55, 0.05))):
        clear(page)
        draw(page, digits.STROKES[3], size, at)
        page.wait_for(TOLD)
        seen.append(pixels(page))
    worst = max(abs(a - b) for a, b in zip(*seen))
    if worst > 80:
        fail(f"the inputs of a small and a large digit differ: {worst}")


# ------------------------------------------------------------------------------------------ pictures

def png_of(rows, width, colours):
    """Returns a PNG of rows of bytes; 3 colours, or grey."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, len(rows), 8, 2 if colours == 3 else 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def png(seen, width, times=1, turned=False):
    """Returns a grey PNG with each pixel enlarged `times`."""
    rows = []
    for at in range(0, len(seen), width):
        row = bytes(255 - value if turned else value for value in seen[at:at + width] for _ in range(times))
        rows += [row] * times
    return png_of(rows, width * times, 1)


def drop(page, path):
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.tell("Input.dispatchDragEvent", type=kind, x=200, y=200, data=data)


def choose(page, path):
    node = page.tell("DOM.getDocument")["root"]["nodeId"]
    found = page.tell("DOM.querySelector", nodeId=node, selector="#file")["nodeId"]
    page.tell("DOM.setFileInputFiles", files=[str(path)], nodeId=found)


def tick(page, name, wanted):
    """Sets the check box to `wanted` and returns whether it was ticked before."""
    was = page.value(f"document.getElementById('{name}').checked")
    if was != wanted:
        page.value(f"document.getElementById('{name}').click()")
    return was


def sheet(strokes, width, height, left, top, size, pen):
    """Returns a grey PNG of a sheet of paper with dark strokes at [left, left + size] by [top, top + size]."""
    lines = []
    for stroke in strokes:
        points = [(left + x * size / 100, top + y * size / 100) for x, y in stroke]
        lines += zip(points, points[1:])

    def dark(x, y):
        nearest = min(distance(x, y, a, b) for a, b in lines)
        return min(1.0, max(0.0, pen / 2 + 0.5 - nearest))

    return png_of([bytes(round(225 - 190 * dark(x + 0.5, y + 0.5)) for x in range(width)) for y in range(height)], width, 1)


def distance(x, y, a, b):
    """Returns the distance from (x, y) to the line between two points."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    at = min(1, max(0, ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy)))
    return math.hypot(x - a[0] - at * dx, y - a[1] - at * dy)


def expect_sheets(page, folder, told):
    """Expects that a digit on a sheet is boxed, centred and inverted like a drawn one, unless that is disabled."""
    right = [digit for digit in told if told[digit] == str(digit)]
    for number, digit in enumerate((right[0], right[len(right) // 2], right[-1])):
        path = pathlib.Path(folder) / f"sheet-{digit}.png"
        path.write_bytes(sheet(digits.STROKES[digit], 150, 100, (5, 80, 60)[number], (30, 4, 45)[number], 60, 6))
        clear(page)
        (drop if number % 2 else choose)(page, path)
        page.wait_for(f"{BEST} !== 'nothing yet'")
        page.wait_for(TOLD)
        leave_picture(page, f"serve-sheet-{digit}")
        if answer(page) != str(digit):
            fail(f"the {digit} on a sheet is recognized as {answer(page)}")
        expect_as_mnist(page)
        boxed = pixels(page)
        tick(page, "centre", False)
        page.wait_for(TOLD)
        if pixels(page) == boxed or sum(value > 60 for value in pixels(page)) * 3 > sum(value > 60 for value in boxed):
            fail("a sheet was boxed although boxing is disabled")
        tick(page, "centre", True)
        page.wait_for(TOLD)
        if pixels(page) != boxed:
            fail("a sheet is boxed differently the second time")


def expect_pictures(page, folder):
    """Expects that a file of the drawn picture gives the same input; so does a large one of ink on paper."""
    clear(page)
    draw(page, digits.STROKES[7])
    told = answer(page)
    seen = pixels(page)
    for name, data, way in (("same.png", png(seen, 28), drop), ("paper.png", png(seen, 28, 10, True), choose)):
        clear(page)
        path = pathlib.Path(folder) / name
        path.write_bytes(data)
        way(page, path)
        page.wait_for(f"{BEST} !== 'nothing yet'")
        if tick(page, "centre", False) != (name == "paper.png"):
            fail(f"{name}: whether it is boxed and centred is for the other picture")
        if answer(page) != told:
            fail(f"{name} is recognized as {answer(page)}, not as {told}")
        worst = max(abs(a - b) for a, b in zip(seen, pixels(page)))
        if worst > (0 if name == "same.png" else 3):
            fail(f"{name} is seen otherwise than what was drawn: {worst}")
    if page.value("document.getElementById('turn').checked") is not True:
        fail("a picture of dark ink was not inverted")
    path = pathlib.Path(folder) / "none.png"
    path.write_bytes(b"not a picture")
    choose(page, path)
    page.wait_for("document.getElementById('trouble').textContent === 'none.png is not an image that this browser can read.'")


def drawn(program, recipe, mnist):
    folder = tempfile.mkdtemp(prefix="disttf-serve-page-")
    has_mnist = pathlib.Path(mnist).is_dir()
    print(f"trained on {'MNIST' if has_mnist else 'the built-in digits'}", flush=True)
    words = [f"--config={recipe}", *((f"--data_dir={mnist}",) if has_mnist else ("--dataset=digits", f"--data_dir={folder}/data"))]
    try:
        directory = train(program, folder, "run", *words)
        with Serve(program, directory) as server, devtools.Browser(devtools.find_browser()) as browser:
            page = open_page(browser, server.url)
            page.wait_for("/[0-9.]+ % test accuracy/.test(document.getElementById('subtitle').textContent)")
            told = draw_all(page)
            expect_one_at_a_time(page)
            leave_picture(page, "serve-drawn")
            expect_size_to_be_nothing(page)
            expect_pictures(page, folder)
            expect_sheets(page, folder, told)
            expect_quiet(page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------------------------- a live run

VERSION = "Number(document.getElementById('version').textContent.match(/[0-9]+/))"


def live(program):
    """One run trains all the time: its first checkpoint reaches a waiting page, others arrive during drawing."""
    folder = tempfile.mkdtemp(prefix="disttf-serve-page-")
    try:
        with Serve(program, f"{folder}/run") as server, devtools.Browser(devtools.find_browser()) as browser:
            server.says("waiting for a model: .*run.* is not there yet")
            page = browser.page()
            page.look(1280, 900)
            page.open(server.url)
            page.wait_for("document.getElementById('link').textContent === 'no model yet' && document.getElementById('asking').hidden")
            with Program([program, "launch", "--workers=2", "--train_steps=10000000", f"--train_dir={folder}/run", "--save_steps=100",
                          "--save_secs=0", "--eval_every=100", "--debug_delay_ms=10", "--dataset=digits", f"--data_dir={folder}/data"],
                         cwd=folder, env={**os.environ, "XDG_RUNTIME_DIR": folder}) as launch:
                page.wait_for("document.getElementById('link').textContent === 'live' && !document.getElementById('asking').hidden")

                def hold():
                    """Waits for two checkpoints while the mouse button is down."""
                    for _ in range(2):
                        old = page.value(VERSION)
                        page.wait_for(f"{VERSION} > {old}")
                    page.wait_for("/^Version [0-9,]+ is now serving; test accuracy [0-9.]+ %[.]$/.test("
                                  "document.getElementById('news').textContent)")

                draw(page, digits.STROKES[0], between=hold)
                if answer(page) == "nothing yet":
                    fail("no new request was sent for the drawing in progress")
                leave_picture(page, "serve-news")
                if launch.process.poll() is not None:
                    fail(f"the run has ended:\n{launch.said}")
            expect_quiet(page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- tables

def write_table(path, label):
    """Writes a table of two numbers and a label, which is a function of them."""
    dice = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"length,width,{'weight' if label == 'number' else 'species'}\n")
        for _ in range(600):
            length, width = dice.uniform(0, 10), dice.uniform(0, 10)
            told = f"{3 * length + 2 * width:.3f}" if label == "number" else ("large" if length + width > 10 else "small")
            file.write(f"{length:.3f},{width:.3f},{told}\n")


def fill(page, length, width):
    for at, value in enumerate((length, width)):
        page.value(f"(() => {{ const field = document.querySelectorAll('#columns input')[{at}]; field.value = '{value}';"
                   "field.dispatchEvent(new Event('input', {bubbles: true})); })()")
    page.wait_for(TOLD)
    return page.value(BEST)


def table(program):
    folder = tempfile.mkdtemp(prefix="disttf-serve-page-")
    try:
        with devtools.Browser(devtools.find_browser()) as browser:
            for label in ("class", "number"):
                write_table(f"{folder}/{label}.csv", label)
                directory = train(program, folder, label, f"--data={folder}/{label}.csv", f"--label_type={label}",
                                  f"--data_dir={folder}/data-{label}", "--train_steps=600", "--hidden_units=16")
                with Serve(program, directory) as server:
                    page = open_page(browser, server.url)
                    names = page.value("[...document.querySelectorAll('#columns label')].map((each) => each.innerText.trim()).join()")
                    if names != "length,width":
                        fail(f"the form's fields are {names}")
                    said = (fill(page, 9, 8), fill(page, 1, 2))
                    leave_picture(page, f"serve-table-{label}")
                    if label == "class" and [each.split(",")[0] for each in said] != ["large", "small"]:
                        fail(f"the classes shown are {said}")
                    if label == "number":
                        told = [float(each.removeprefix("weight: ")) for each in said]
                        if abs(told[0] - 43) > 8 or abs(told[1] - 7) > 8:
                            fail(f"the output for 43 and 7 is {told}")
                    page.value("(() => { const field = document.querySelector('#columns input'); field.value = '';"
                               "field.dispatchEvent(new Event('input', {bubbles: true})); })()")
                    page.wait_for(f"document.getElementById('missing').textContent === 'length is not a number' && {BEST} === 'nothing yet'")
                    expect_quiet(page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --------------------------------------------------------------------------------------------- colours

def one_colour(colour, side):
    dice = random.Random(f"{colour} {side}")
    strong = {"red": 0, "blue": 2}[colour]
    rows = [bytes(dice.randrange(150, 256) if at % 3 == strong else dice.randrange(0, 100) for at in range(3 * side))
            for _ in range(side)]
    return png_of(rows, side, 3)


def coloured(program):
    """A model of colour pictures of another size: no field to draw on, files of any size."""
    folder = tempfile.mkdtemp(prefix="disttf-serve-page-")
    try:
        for part, many in (("train", 60), ("test", 10)):
            for colour in ("red", "blue"):
                place = pathlib.Path(folder) / "pictures" / part / colour
                place.mkdir(parents=True)
                for number in range(many):
                    (place / f"{number}.png").write_bytes(one_colour(colour, 12))
        directory = train(program, folder, "run", f"--data={folder}/pictures", f"--data_dir={folder}/data",
                          "--train_steps=60", "--batch_size=10", "--hidden_units=8")
        with Serve(program, directory) as server, devtools.Browser(devtools.find_browser()) as browser:
            page = open_page(browser, server.url)
            page.wait_for("document.getElementById('draw').hidden && document.getElementById('turn-label').hidden &&"
                          "document.getElementById('size').textContent === '12 × 12 pixels, colour'")
            for colour, side, way in (("red", 12, choose), ("blue", 50, drop), ("red", 7, drop)):
                path = pathlib.Path(folder) / f"{colour}-{side}.png"
                path.write_bytes(one_colour(colour, side))
                way(page, path)
                page.wait_for(f"{TOLD} && {BEST}.startsWith('{colour}, ')")
            leave_picture(page, "serve-colours")
            expect_quiet(page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- narrow

def expect_files(url):
    """Expects security headers, compression if the client accepts it, and revalidation by ETag."""
    for file in ("", "assets/serve.js", "assets/serve.css", "assets/pad.js", "assets/scan.js", "assets/strokes.js", "assets/dom.js", "assets/style.css"):
        with urllib.request.urlopen(urllib.request.Request(url + file, headers={"Accept-Encoding": "gzip"})) as reply:
            if not reply.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';"):
                fail(f"{file}: {reply.headers}")
            if reply.headers["Content-Encoding"] != "gzip" or gzip.decompress(reply.read()) != urllib.request.urlopen(url + file).read():
                fail(f"{file} differs with and without compression")
            tag = reply.headers["ETag"]
        expect_refused(url + file, "GET", 304, **{"If-None-Match": tag})
        expect_refused(url + file, "POST", 405)
    expect_refused(url + "assets/none.js", "GET", 404)


def expect_keyboard(page):
    """Expects that Tab reaches everything, and that arrows and the space bar draw."""
    page.value("document.activeElement.blur()")
    reached = set()
    for _ in range(9):
        key(page, "Tab", 9)
        reached.add(page.value("document.activeElement.id"))
    for name in ("pad", "undo", "clear", "file", "turn", "centre"):
        if name not in reached:
            fail(f"{name} cannot be reached by the keyboard; only {sorted(reached)}")
    page.value("document.getElementById('pad').focus()")
    # Collects all announcements, because the answer follows the announcements of the pen.
    page.value("window.said = []; new MutationObserver(() => window.said.push(document.getElementById('quiet').textContent))"
               ".observe(document.getElementById('quiet'), {childList: true})")
    for _ in range(5):
        key(page, "ArrowUp", 38)
    key(page, " ", 32, " ")
    page.wait_for("window.said.includes('pen down, 50 across, 30 down')")
    for _ in range(10):
        key(page, "ArrowDown", 40)
    key(page, " ", 32, " ")
    page.wait_for(f"{TOLD} && {BEST} !== 'nothing yet'")
    if sum(value > 100 for value in pixels(page)) < 15:
        fail("the keyboard has drawn no line")
    page.wait_for(f"document.getElementById('quiet').textContent === {BEST}")
    key(page, "Backspace", 8)
    page.wait_for(f"{BEST} === 'nothing yet'")


def expect_touch(page):
    field = page.value("(() => { const is = document.getElementById('pad').getBoundingClientRect();"
                       "return [is.left, is.top, is.width]; })()")
    for kind, at in (("touchStart", 0.2), ("touchMove", 0.5), ("touchMove", 0.8), ("touchEnd", None)):
        points = [] if at is None else [{"x": field[0] + field[2] / 2, "y": field[1] + field[2] * at}]
        page.tell("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    page.wait_for(f"{TOLD} && {BEST} !== 'nothing yet'")


def narrow(program):
    folder = tempfile.mkdtemp(prefix="disttf-serve-page-")
    try:
        directory = train(program, folder, "run", "--dataset=digits", f"--data_dir={folder}/data", "--train_steps=200")
        with Serve(program, directory) as server, devtools.Browser(devtools.find_browser()) as browser:
            expect_files(server.url)
            page = open_page(browser, server.url)
            draw(page, digits.STROKES[4])
            page.wait_for(TOLD)
            for width, height in ((1280, 900), (320, 640)):
                for dark in (False, True):
                    page.look(width, height, dark)
                    page.wait_for("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
                    wide = page.value("document.documentElement.scrollWidth")
                    if wide > width:
                        fail(f"the page is wider than a screen of {width}: {wide}")
                    leave_picture(page, f"serve-{width}-{'dark' if dark else 'light'}", whole=True)
            clear(page)
            expect_keyboard(page)
            expect_touch(page)
            server.close()
            page.wait_for("document.getElementById('link').textContent === 'no response; retrying'")
            page.complaints = [each for each in page.complaints if "ERR_" not in each]
            expect_quiet(page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main({"drawn": drawn, "live": live, "table": table, "coloured": coloured, "narrow": narrow})
