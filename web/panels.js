// Draws everything on the page except the charts.

import {byId, make, setText, setAttribute, keep, table, count, number, percent, bytes, seconds, clock, day} from "./dom.js";

const STAGES = ["pull", "load", "forward", "backward", "push", "wait", "apply"];
const MARKS = {killed: "✕", lost: "✕", failed: "✕", ended: "■", started: "▸", restarted: "↻",
               replaced: "↻", joined: "+", goes_on: "▸", set_back: "↶", checkpoint: "▣", timeline: "≡", saved: "▣",
               evaluated: "◎", finished: "✓", stopped: "■", update: "✎", asked: "✎"};

const none = (text) => make("p", {class: "none", text});

export function drawHeader(state) {
  const {run, now} = state;
  const name = [run.dataset, run.model].filter(Boolean).join(", ");
  setText(byId("title"), name ? name : "disttf");
  document.title = name ? name + " · disttf" : "disttf";
  const badge = byId("state");
  setText(badge, run.state ?? "");
  setAttribute(badge, "data-state", state.isOver ? "ended" : run.state === "training" ? "live" : "waiting");
  const parts = [];
  if (run.trainers) parts.push(run.trainers + (run.trainers === 1 ? " trainer" : " trainers"));
  if (run.ps !== undefined) parts.push(run.ps + " ps");
  if (run.mode) parts.push(run.mode);
  if (run.parameters) parts.push(count(run.parameters) + (run.parameters === 1 ? " parameter" : " parameters"));
  if (run.batch_size) parts.push("batches of " + run.batch_size);
  if (run.began) parts.push("since " + day(run.began));
  setText(byId("subtitle"), parts.join(" · "));
  const step = Math.max(now.step ?? 0, state.result?.step ?? 0, run.step ?? 0);
  const share = run.train_steps ? Math.min(1, step / run.train_steps) : 0;
  byId("progress-bar").style.width = (100 * share).toFixed(1) + "%";
  setAttribute(byId("progress"), "aria-valuenow", String(Math.round(100 * share)));
  drawNumbers(state, step);
  if (state.isProgram) {  // only the program knows its examples
    setText(byId("rate-title"), "Rows a second");
    for (const name of ["confusion", "wrong", "filters"]) byId(name).closest("section").hidden = true;
  }
  setText(byId("slowest"), state.result ? state.result.line : sentenceOf(state));
}

function drawNumbers(state, step) {
  const {run, now, series} = state;
  const facts = [["step", count(step) + (run.train_steps ? " of " + count(run.train_steps) : "")],
                 ["loss", number(now.loss)],
                 [(state.isProgram ? "rows" : "images") + " a second", state.isOver ? "" : count(now.images_per_second)],
                 ["validation accuracy", percent(series.validation_accuracy.last, 2)],
                 ["test accuracy", percent(state.result?.accuracy ?? series.test_accuracy.last, 2)],
                 ["left", state.isOver ? "" : seconds(timeLeft(state, step))]];
  keep(byId("now"), facts.filter(([, value]) => value), ([name]) => name,
       ([name]) => make("div", {}, make("dt", {text: name}), make("dd")),
       (item, [, value]) => setText(item.lastChild, value));
}

// Extrapolates from the later half of the known steps; undefined without enough of them.
function timeLeft(state, step) {
  const {steps, times} = state.series.loss;
  const last = steps.length - 1;
  const from = last >> 1;
  if (last < 1 || steps[last] <= steps[from] || !state.run.train_steps) return undefined;
  return (state.run.train_steps - step) * (times[last] - times[from]) / (steps[last] - steps[from]);
}

export function sentenceOf(state) {
  const slowest = state.frontier?.slowest;
  if (state.isOver || !state.frontier) return "";
  if (!slowest) return "No task is slower than the others.";
  return slowest.task + " is " + percent(slowest.slower) + " slower than " + (slowest.than === "its fastest" ? "at its fastest: " : "the others: ") + slowest.stage;
}

const TASK_COLUMNS = ["task", "state", "does", "step#", "threads", "memory#", "sent#", "received#", "restarts#", "process", ""];

export function drawTasks(state, verbs) {
  const place = byId("tasks");
  const tasks = state.tasksInOrder;
  if (tasks.length === 0) return place.replaceChildren(none("No tasks known yet."));
  if (!place.querySelector("table")) {
    place.replaceChildren(make("div", {class: "cards"}, table(TASK_COLUMNS, [])));
  }
  keep(place.querySelector("tbody"), tasks, (task) => task.task, (task) => makeTaskRow(task, verbs),
       (row, task) => fillTaskRow(row, task, state));
}

function makeTaskRow(task, verbs) {
  const row = make("tr", {}, make("th", {scope: "row", text: task.task}));
  for (const heading of TASK_COLUMNS.slice(1, -1)) {
    row.append(make("td", {"data-label": heading.replace("#", ""), class: heading.endsWith("#") ? "number" : null}));
  }
  row.children[1].append(make("span", {class: "state"}));
  const last = make("td");
  if (verbs.may("restart")) {
    last.append(verbs.button("Restart", "restart " + task.task, "/v1/pods/" + task.task + "/restart"), " ",
                verbs.button("Replace", "replace " + task.task, "/v1/pods/" + task.task + "/replace"));
  }
  row.append(last);
  return row;
}

function fillTaskRow(row, task, state) {
  const name = task.state ?? (state.isOver ? "done" : "running");
  const mark = row.children[1].firstChild;
  setText(mark, name);
  setAttribute(mark, "data-state", name);
  const cells = [state.doing(task), count(task.step), [task.threads, task.isa].filter(Boolean).join(", "),
                 bytes(task.rss_bytes), bytes(task.bytes_sent), bytes(task.bytes_received),
                 count(task.restarts), [task.pid, task.address ?? task.host].filter(Boolean).join(" at ")];
  cells.forEach((text, at) => setText(row.children[at + 2], text));
}

export function drawStages(state) {
  const tasks = state.tasksInOrder.filter((task) => Object.values(task.stages ?? {}).some((each) => each > 0));
  const used = STAGES.filter((stage) => tasks.some((task) => task.stages[stage] > 0));
  keep(byId("legend"), used, (stage) => stage, (stage) => {
    const sample = make("span", {class: "stage", "data-stage": stage, "aria-hidden": "true"});
    return make("li", {}, sample, " " + stage);
  });
  const place = byId("stages");
  if (tasks.length === 0) {
    place.replaceChildren(none("No stages measured yet."));
  } else {
    if (!place.querySelector(".bars")) place.replaceChildren(make("div", {class: "bars"}));
    drawBars(place.firstChild, tasks);
  }
  setText(byId("frontier"), frontierText(state));
  const details = byId("stages-table");
  if (details.open) details.lastElementChild.replaceChildren(stageTable(tasks, used));
}

const totalOf = (task) => Object.values(task.stages).reduce((sum, each) => sum + each, 0);

// All bars share one scale: the longest fills its row.
function drawBars(place, tasks) {
  const longest = Math.max(...tasks.map(totalOf));
  const cells = tasks.flatMap((task) => [{task, part: "name"}, {task, part: "bar"}, {task, part: "sum"}]);
  keep(place, cells, ({task, part}) => task.task + " " + part,
       ({part}) => make("div", {class: part === "bar" ? "bar" : null}), (cell, {task, part}) => {
    if (part === "name") return setText(cell, task.task);
    if (part === "sum") return setText(cell, seconds(totalOf(task)));
    const stages = STAGES.filter((stage) => task.stages[stage] > 0);
    setAttribute(cell, "role", "img");
    setAttribute(cell, "aria-label", stages.map((stage) => stage + " " + seconds(task.stages[stage])).join(", "));
    keep(cell, stages, (stage) => stage, (stage) => make("span", {class: "stage", "data-stage": stage}), (span, stage) => {
      span.style.width = (100 * task.stages[stage] / longest).toFixed(1) + "%";
      setAttribute(span, "title", stage + " " + seconds(task.stages[stage]));
    });
  });
}

function stageTable(tasks, used) {
  return table(["task", ...used.map((stage) => stage + "#"), "all#"],
               tasks.map((task) => [task.task, ...used.map((stage) => seconds(task.stages[stage])), seconds(totalOf(task))]));
}

function frontierText(state) {
  const stages = (state.frontier?.stages ?? []).filter((each) => each.share >= 0.05);
  if (stages.length === 0) return "";
  const parts = stages.sort((a, b) => b.share - a.share).slice(0, 4)
                    .map((each) => each.stage + " of " + each.task + " " + percent(each.share));
  return "Critical path of a step (" + seconds(state.frontier.step_seconds) + "): " + parts.join(", ") + ".";
}

export function drawServers(state) {
  const servers = state.tasksInOrder.filter((task) => Array.isArray(task.range));
  const place = byId("servers");
  if (servers.length === 0) return place.replaceChildren(none("No parameter server has reported its range yet."));
  const all = state.run.parameters || Math.max(...servers.map((task) => task.range[1]));
  if (!place.querySelector(".ranges")) {
    place.replaceChildren(make("div", {class: "ranges", "aria-hidden": "true"}), make("div", {class: "cards"}));
  }
  const primaries = servers.filter((task) => task.standing !== "backup");
  keep(place.firstChild, primaries, (task) => task.task, () => make("span"), (span, task) => {
    span.style.left = (100 * task.range[0] / all).toFixed(2) + "%";
    span.style.width = (100 * (task.range[1] - task.range[0]) / all).toFixed(2) + "%";
    setText(span, task.task);
  });
  const isReplicated = servers.some((task) => task.standing);
  const headings = ["ps", "parameters", "applied#", "repeated#", "late#", "generation#"];
  const rows = servers.map((task) => {
    const row = [task.task, count(task.range[0]) + " to " + count(task.range[1] - 1), count(task.applied),
                 count(task.repeats), count(task.dropped), count(task.generation)];
    return isReplicated ? [...row, task.standing ?? "", count(task.lag_updates), count(task.view)] : row;
  });
  const text = JSON.stringify(rows);
  if (place.dataset.text === text) return;  // keeps the reader's selection
  place.dataset.text = text;
  const drawn = table(isReplicated ? [...headings, "role", "behind by#", "view#"] : headings, rows);
  label(drawn);
  place.lastChild.replaceChildren(drawn);
}

// Labels each cell for the narrow layout, which has no heading row.
function label(drawn) {
  const names = [...drawn.querySelectorAll("thead th")].map((each) => each.textContent);
  for (const row of drawn.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, at) => { if (at > 0) cell.dataset.label = names[at]; });
  }
}

export function drawCheckpoints(state) {
  const place = byId("checkpoints");
  if (state.checkpoints.length === 0) return place.replaceChildren(none("No checkpoint yet."));
  const first = new Map();  // hash -> the first checkpoint with it
  for (const each of state.checkpoints) {
    if (each.weights_sha256 && !first.has(each.weights_sha256)) first.set(each.weights_sha256, each);
  }
  const rows = [...state.checkpoints].reverse().map((each) => {
    const same = first.get(each.weights_sha256);
    const hash = make("span", {class: "hash", text: (each.weights_sha256 ?? "").slice(0, 16), title: each.weights_sha256});
    if (same && same !== each) hash.append(" bit-identical to " + same.name);
    else if (each.weights_sha256 && each.weights_sha256 === state.result?.weights_sha256) hash.append(" bit-identical to the result");
    return [count(each.step), each.name ?? "", bytes(each.bytes), seconds(each.seconds), clock(each.time), hash];
  });
  place.replaceChildren(table(["step#", "name", "size#", "took#", "at", "SHA-256 of the weights"], rows));
}

export function drawStory(state) {
  const newest = [...state.events].reverse();
  keep(byId("story"), newest.length ? newest : [{}], (event) => [event.time, event.what, event.task, event.text].join(" "), (event) => {
    if (!event.text) return make("li", {}, "No events yet.");
    const mark = event.level === "error" ? "✕" : event.level === "warning" ? "!" : MARKS[event.what] ?? "·";
    return make("li", {"data-level": event.level},
                make("time", {datetime: new Date(1000 * event.time).toISOString(), text: clock(event.time)}),
                make("span", {class: "mark", "aria-hidden": "true", text: mark}), make("span", {text: event.text}));
  });
}

export function drawConfusion(state) {
  const place = byId("confusion");
  const matrix = state.confusion;
  if (!matrix) return place.replaceChildren(none("The test set has not been evaluated yet."));
  // Rows arrive one by one: the longest one has the number of classes.
  const classes = Math.max(...matrix.counts.map((row) => row?.length ?? 0));
  const names = Array.from({length: classes}, (_, at) => String(matrix.classes?.[at] ?? at));
  const rows = names.map((_, label) => {
    const counts = matrix.counts[label] ?? names.map(() => 0);
    const all = counts.reduce((sum, each) => sum + each, 0) || 1;
    return [names[label], ...counts.map((each, answer) => {
      const cell = make("span", {text: each === 0 ? "" : count(each)});
      cell.dataset.share = answer === label ? "right" : (each / all).toFixed(4);
      return cell;
    })];
  });
  const drawn = table(["label \\ prediction", ...names.map((name) => name + "#")], rows);
  for (const cell of drawn.querySelectorAll("td")) {
    const share = cell.firstChild.dataset.share;
    if (share === "right") cell.dataset.right = "";
    else if (Number(share) > 0) cell.style.backgroundColor = "rgba(" + heat() + "," + Math.min(0.85, 0.12 + 6 * Number(share)) + ")";
  }
  drawn.prepend(make("caption", {class: "unseen", text: "Step " + count(matrix.step) + ": rows are labels, columns are predictions"}));
  place.replaceChildren(drawn);
}

const heat = () => getComputedStyle(document.documentElement).getPropertyValue("--heat").trim();

export function drawPictures(state) {
  const draw = (name, text, words) => {
    const place = byId(name);
    const pictures = state.pictures[name].filter((each) => /^[A-Za-z0-9+/=]+$/.test(each?.png ?? ""));
    if (pictures.length === 0) return place.replaceChildren(make("li", {class: "none", text}));
    keep(place, pictures, (each) => each.index + " " + each.step, (each) => {
      const image = make("img", {src: "data:image/png;base64," + each.png, alt: words(each)});
      return make("li", {}, image, name === "wrong" ? make("span", {text: each.label + " → " + each.answer}) : "");
    });
  };
  draw("wrong", "None yet.", (each) => each.label + " classified as " + each.answer);
  draw("filters", "None yet.", (each) => "unit " + each.index + " of the first layer");
}

export function drawSettings(state) {
  const settings = Object.entries(state.run.settings ?? {});
  setText(byId("settings-summary"), settings.length ? settings.length + " settings of the run" : "No settings known yet");
  const text = (value) => typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
  byId("settings").replaceChildren(table(["setting", "value"], settings.map(([name, value]) =>
      [name, make("code", {text: text(value)})])));
}
