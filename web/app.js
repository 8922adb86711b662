// The page of a run: reads one stream of records into a RunState and draws it.

import {byId, make, setText, setAttribute, day} from "./dom.js";
import {RunState} from "./state.js";
import {makeCharts} from "./charts.js";
import {Runs} from "./runs.js";
import * as panels from "./panels.js";

const DRAW_MS = 500;          // minimum interval: faster is unreadable, and the run needs the CPU
const SURE_MS = 6000;         // how long a pressed button waits for confirmation
const QUIET_MS = 10000;       // minimum interval between announcements to a screen reader

const state = new RunState();
const asked = new URLSearchParams(location.search).get("run");  // index of one of several recorded runs
let charts = null;
let recorded = false;  // the page shows a recorded run, not a live one
let lastId = "";
let source = null;
let drawing = 0;
let verbs = null;

function setLink(name, text) {
  setText(byId("link"), text);
  setAttribute(byId("link"), "data-state", name);
}

// Announces important events to a screen reader, and at most one in QUIET_MS.
let saidAt = 0;
function sayQuietly(text) {
  if (performance.now() - saidAt < QUIET_MS && saidAt !== 0) return;
  saidAt = performance.now();
  setText(byId("quiet"), text);
}

// --- changes

class Verbs {
  constructor(names) {
    this.names = new Set(names);
    this.buttons = new Set();
    this.isOver = false;
  }
  may(name) { return this.names.has(name); }

  // Disables the buttons of a run that is over and shows why; enables them if the run resumes.
  setOver(isOver) {
    if (this.isOver === isOver) return;
    this.isOver = isOver;
    for (const button of this.buttons) button.disabled = isOver;
    if (this.names.size !== 0) setText(byId("answer"), isOver ? "The run is over and accepts no requests." : "");
  }

  // Requires a second press before an irreversible action.
  button(text, what, path, body, asks = true) {
    const button = make("button", {type: "button", text, "aria-label": text + ": " + what});
    button.disabled = this.isOver;
    this.buttons.add(button);
    let timer = 0;
    const rest = () => {
      clearTimeout(timer);
      timer = 0;
      delete button.dataset.asks;
      button.textContent = text;
    };
    button.addEventListener("click", () => {
      if (asks && timer === 0) {
        button.dataset.asks = "";
        button.textContent = "Really?";
        timer = setTimeout(rest, SURE_MS);
        return;
      }
      rest();
      send(path, typeof body === "function" ? body() : body);
    });
    return button;
  }
}

async function send(path, body) {
  setText(byId("answer"), "…");
  try {
    const reply = await fetch(path, {method: "POST", body: body === undefined ? "" : JSON.stringify(body)});
    const json = await reply.json().catch(() => ({}));
    setText(byId("answer"), json.message ?? json.error ?? "HTTP status " + reply.status);
  } catch {
    setText(byId("answer"), "No response from the run.");
  }
}

function drawVerbs() {
  const place = byId("verbs");
  if (verbs.may("save")) place.append(verbs.button("Save now", "write a checkpoint", "/v1/save", undefined, false));
  if (verbs.may("trace")) place.append(verbs.button("Timeline", "trace every task for 50 steps into a file for ui.perfetto.dev", "/v1/trace", {steps: 50}, false));
  if (verbs.may("update")) {
    const more = () => ({workers: 1 + [...state.tasks.values()].filter((task) => task.task.startsWith("worker:")).length});
    place.append(verbs.button("One more worker", "add a worker to the run", "/v1/update", more));
  }
  if (verbs.may("stop")) place.append(verbs.button("Stop the run", "save a checkpoint first if it has a directory", "/v1/stop"));
  place.hidden = place.children.length === 0;
}

// --- drawing

function draw() {
  drawing = 0;
  const changed = state.takeChanges();
  const any = (...names) => names.some((name) => changed.has(name));
  verbs.setOver(ended || state.isOver);
  if (any("series")) charts.draw(state.series, state.isProgram);
  if (any("run", "series", "tasks")) panels.drawHeader(state);
  if (any("tasks", "run")) {
    panels.drawTasks(state, verbs);
    panels.drawStages(state);
    panels.drawServers(state);
  }
  if (any("checkpoints")) panels.drawCheckpoints(state);
  if (any("events")) panels.drawStory(state);
  if (any("confusion")) panels.drawConfusion(state);
  if (any("pictures")) panels.drawPictures(state);
  if (any("run")) panels.drawSettings(state);
  if (recorded && source) setLink("waiting", recordsText());
}

// A --metrics_file has only times since the run began, so no date can be shown.
function recordsText() {
  return "from its records" + (state.time > 1e9 ? ", up to " + day(state.time) : "");
}

function drawSoon() {
  if (drawing === 0) drawing = setTimeout(() => requestAnimationFrame(draw), DRAW_MS);
}

// --- the stream

function take(text, id, apply) {
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    return;
  }
  if (id) lastId = id;
  apply(record);
  drawSoon();
}

function hear(record) {
  state.apply(record);
  if (record.kind === "event" && record.level !== "info") sayQuietly(record.text);
  if (record.kind === "result") sayQuietly(record.line);
}

function open() {
  if (source || document.hidden) return;
  const words = new URLSearchParams(recorded && asked !== null ? {run: asked} : {});
  if (lastId) words.set("after", lastId);
  source = new EventSource("/v1/stream?" + words);
  source.onopen = () => recorded ? setLink("waiting", recordsText()) : setLink("live", "live");
  source.onmessage = (event) => take(event.data, event.lastEventId, hear);
  source.addEventListener("view", (event) => take(event.data, event.lastEventId, (view) => {
    state.replace(view);
    if (view.id !== undefined) lastId = String(view.id);
  }));
  source.addEventListener("end", () => {
    close();
    ended = true;
    setLink("ended", recorded ? "no longer served" : "over");
    verbs.setOver(true);
    if (!recorded) sayQuietly("The run has ended.");
  });
  source.onerror = () => {
    const isOver = state.isOver && !recorded;
    setLink("lost", isOver ? "the run is over" : "disconnected; retrying");
    if (isOver) {
      close();
      verbs.setOver(true);
    } else if (source?.readyState === EventSource.CLOSED) setTimeout(again, 3000);
  };
}

let ended = false;
function close() {
  source?.close();
  source = null;
}
function again() {
  close();
  open();
}

// A hidden page closes its stream.
document.addEventListener("visibilitychange", () => {
  if (ended) return;
  if (document.hidden) {
    close();
    setLink("waiting", "paused");
  } else {
    open();
  }
});

async function start() {
  const access = await fetch("/v1/access").then((reply) => reply.json()).catch(() => ({}));
  const runs = access.runs ?? [];
  recorded = runs.length > 0;
  if (runs.length > 1 && asked === null) return new Runs(runs);
  if (recorded) byId("subtitle").before(make("code", {text: runs[asked ?? 0]?.name ?? ""}));
  if (runs.length > 1) byId("subtitle").before(make("a", {href: "/", text: "all " + runs.length + " runs"}));
  charts = makeCharts();
  verbs = new Verbs(access.verbs ?? []);
  drawVerbs();
  draw();
  open();
}
byId("stages-table").addEventListener("toggle", () => panels.drawStages(state));
start();
