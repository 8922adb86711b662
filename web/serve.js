// The page of disttf serve: sends a drawing, an image file or a table row to the model and shows its
// answer, also while the user draws. Data of the server enters the page as text, never as markup.
import {byId, count, keep, make, number, percent, setAttribute, setText} from "/assets/dom.js";
import {Pad} from "/assets/pad.js";
import {centred, rim} from "/assets/scan.js";
import {picture} from "/assets/strokes.js";

const LOOK_MS = 1000;  // interval between polls for a new version
const SETTLE_MS = 700;  // how long an answer must be stable before a screen reader announces it
const MOST_BARS = 12;
const MOST_TIMES = 16;  // maximum ratio of a file's working size to the model's, in each direction
const GREY = [0.299, 0.587, 0.114];  // weights of red, green and blue
const MOST_INPUTS = 64;  // a form of more inputs has a single field

let model = null;  // the answer of /v1/page, and `shape`: the shape of an example
let asked = null;  // the newest example, as numbers in the model's order; null: none
let isBusy = false;
let pad = null;
let bitmap = null;  // from a file; null: the drawing is the input
let settled = 0;

const isImage = () => model.kind === "image";
const isLikeMnist = () => isImage() && String(model.shape) === "28,28,1";
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function sayQuietly(text) {
  setText(byId("quiet"), text);
}

function link(state, text) {
  setAttribute(byId("link"), "data-state", state);
  setText(byId("link"), text);
}

// --- requests: one at a time; the next one sends the newest example

function ask(example) {
  asked = example;
  if (example === null) showNothing();
  else if (!isBusy) askOn();
}

async function askOn() {
  isBusy = true;
  setAttribute(byId("bars"), "aria-busy", "true");
  let answered = null;
  while (asked !== null && asked !== answered) {
    const example = asked;
    const wait = await askOnce(example);
    if (wait === 0) answered = example;
    else await sleep(wait);
  }
  isBusy = false;
  setAttribute(byId("bars"), "aria-busy", "false");
}

// Returns 0 after an answer, else the milliseconds to wait before a retry.
async function askOnce(example) {
  const body = JSON.stringify({inputs: [{name: "inputs", datatype: isImage() ? "UINT8" : "FP32",
                                         shape: [1, ...model.shape], data: example}]});
  let reply;
  let said;
  try {
    reply = await fetch("/v2/models/" + encodeURIComponent(model.name) + "/infer",
                        {method: "POST", headers: {"Content-Type": "application/json"}, body});
    said = await reply.json();
  } catch {
    link("lost", "no response; retrying");
    return LOOK_MS;
  }
  if (reply.status === 503) {
    link("waiting", "busy; retrying");
    return Math.min(10, Number(reply.headers.get("Retry-After")) || 1) * 1000;
  }
  link("live", "live");
  if (asked === null) return 0;
  if (!reply.ok) showTrouble(String(said.error ?? reply.status));
  else showAnswer(said.outputs[0].data);
  if (said.model_version !== undefined && String(said.model_version) !== model.version) look();
  return 0;
}

// --- answers

function showNothing() {
  byId("best").className = "none";
  setText(byId("best"), "nothing yet");
  for (const bar of document.querySelectorAll("#bars li")) showBar(bar, 0, false);
}

function showTrouble(text) {
  byId("best").className = "none";
  setText(byId("best"), text);
}

function showBar(bar, share, isBest) {
  bar.querySelector(".bar > span").style.width = 100 * share + "%";
  setText(bar.querySelector(".share"), percent(share, 1));
  bar.toggleAttribute("data-best", isBest);
}

function makeBar({name}) {
  return make("li", {}, make("span", {class: "of", text: name}), make("span", {class: "bar"}, make("span")),
              make("span", {class: "share"}));
}

function showBars(shares, best) {
  let shown = shares.map((share, at) => ({at, share, name: model.classes[at]}));
  if (shown.length > MOST_BARS) shown = shown.sort((a, b) => b.share - a.share || a.at - b.at).slice(0, MOST_BARS);
  keep(byId("bars"), shown, (each) => each.at, makeBar, (bar, each) => showBar(bar, each.share, each.at === best));
}

function showAnswer(values) {
  let text;
  if (model.classes.length === 0) {
    text = (model.label ? model.label + ": " : "") + number(values[0], 6);
  } else {
    const best = values.indexOf(Math.max(...values));
    showBars(values, best);
    text = model.classes[best] + ", " + percent(values[best], 1);
  }
  byId("best").className = "";
  setText(byId("best"), text);
  clearTimeout(settled);
  settled = setTimeout(() => sayQuietly(text), SETTLE_MS);
}

// --- pictures

function showPicture(pixels) {
  const [height, width, channels] = model.shape;
  const canvas = byId("picture");
  const data = new ImageData(width, height);
  for (let at = 0; at < height * width; at += 1) {
    for (let c = 0; c < 3; c += 1) data.data[4 * at + c] = pixels ? pixels[at * channels + c % channels] : 0;
    data.data[4 * at + 3] = 255;
  }
  canvas.getContext("2d", {willReadFrequently: true}).putImageData(data, 0, 0);  // small: kept off the GPU
  setAttribute(canvas, "aria-label", pixels ? `${width} by ${height} pixels, as the model receives them` : "nothing yet");
}

function askPicture(pixels) {
  showPicture(pixels);
  ask(pixels && Array.from(pixels));
}

function drawn() {
  bitmap = null;
  askPicture(picture(pad.strokes, model.shape[0], model.shape[1]));
}

// The file's picture fitted into `times` the model's size: uncropped, centred, its proportions kept.
// Returns RGBA bytes.
function fitted(times, around) {
  const [height, width] = model.shape.map((size) => size * times);
  const canvas = make("canvas", {width, height});
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  const scale = Math.min(width / bitmap.width, height / bitmap.height);
  pen.fillStyle = around;
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, (width - scale * bitmap.width) / 2, (height - scale * bitmap.height) / 2,
                scale * bitmap.width, scale * bitmap.height);
  return pen.getImageData(0, 0, width, height).data;
}

// The file's picture as grey levels, scaled down to at most the size of fitted().
function sheet(around) {
  const scale = Math.min(1, MOST_TIMES * model.shape[1] / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((size) => Math.max(1, Math.round(scale * size)));
  const pen = make("canvas", {width, height}).getContext("2d", {willReadFrequently: true});
  pen.fillStyle = around;
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, 0, 0, width, height);
  const {data} = pen.getImageData(0, 0, width, height);
  const levels = Float32Array.from({length: height * width},
                                   (_, at) => GREY.reduce((sum, share, c) => sum + share * data[4 * at + c], 0));
  return {levels, height, width};
}

// Whether the picture is dark ink on paper, judged by a light rim.
function isOnPaper() {
  const {levels, height, width} = sheet("#000");
  const edge = rim(levels, height, width);
  return edge.reduce((sum, level) => sum + level, 0) > 127 * edge.length;
}

// The picture's ink, scaled and centred as in MNIST; null where there is none.
function inkCentred() {
  const isLight = byId("turn").checked;
  const {levels, height, width} = sheet(isLight ? "#fff" : "#000");
  return centred(isLight ? levels.map((level) => 255 - level) : levels, height, width, model.shape[0], model.shape[1]);
}

// The model's input for the file's picture.
function ofFile() {
  return (isLikeMnist() && byId("centre").checked && inkCentred()) || resized();
}

// Bytes for the model. Averages a larger picture over each pixel, because browsers blur when they
// shrink.
function resized() {
  const [height, width, channels] = model.shape;
  const isLight = byId("turn").checked;
  const larger = Math.max(bitmap.height / height, bitmap.width / width);
  const times = Math.min(MOST_TIMES, Math.max(1, Math.ceil(larger)));
  const data = fitted(times, isLight ? "#fff" : "#000");
  const sums = new Float64Array(height * width * channels);
  const weights = channels === 1 ? [GREY] : [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let at = 0; 4 * at < data.length; at += 1) {
    const x = Math.floor(at % (times * width) / times);
    const y = Math.floor(at / (times * width) / times);
    weights.forEach((of, c) => {
      sums[(y * width + x) * channels + c] += of[0] * data[4 * at] + of[1] * data[4 * at + 1] + of[2] * data[4 * at + 2];
    });
  }
  return Uint8Array.from(sums, (sum) => {
    const value = Math.round(sum / times ** 2);
    return isLight ? 255 - value : value;
  });
}

async function take(file) {
  if (!file || byId("upload").hidden) return;
  setText(byId("trouble"), "");
  try {
    bitmap = await createImageBitmap(file, {colorSpaceConversion: "none"});
  } catch {
    setText(byId("trouble"), `${file.name} is not an image that this browser can read.`);
    return;
  }
  const [height, width, channels] = model.shape;
  byId("turn").checked = channels === 1 && isOnPaper();
  // A picture of exactly the model's size is taken as already centred.
  byId("centre").checked = bitmap.height !== height || bitmap.width !== width;
  askPicture(ofFile());
}

// --- rows of numbers

// Returns the row; null, with a message, if a number is missing.
function row() {
  const fields = [...byId("columns").elements];
  const texts = fields.length === 1 ? fields[0].value.split(/[\s,;]+/).filter(Boolean) : fields.map((each) => each.value);
  const numbers = texts.map((text) => text.trim() === "" ? NaN : Number(text));
  const bad = numbers.findIndex((each) => !Number.isFinite(each));
  let missing = "";
  if (bad >= 0) missing = (model.columns[bad] ?? "number " + (bad + 1)) + " is not a number";
  else if (numbers.length !== model.inputs) missing = `${count(numbers.length)} numbers; a row needs ${count(model.inputs)}`;
  setText(byId("missing"), missing);
  return missing ? null : numbers;
}

function makeForm() {
  const means = Array.from({length: model.inputs}, (_, at) => number(model.means?.[at] ?? 0, 3));
  const form = byId("columns");
  if (means.length > MOST_INPUTS) {
    const field = make("textarea", {rows: 6, spellcheck: "false"});
    field.value = means.join(", ");
    form.replaceChildren(make("label", {class: "whole"}, `${count(means.length)} numbers, separated by commas`, field));
    return;
  }
  form.replaceChildren(...means.map((mean, at) => make("label", {}, model.columns[at] ?? "number " + (at + 1),
      make("input", {type: "number", step: "any", value: mean, autocomplete: "off"}))));
}

// --- the model

function describe() {
  setText(byId("name"), model.name);
  document.title = model.name + " · disttf serve";
  setText(byId("version"), "version " + model.version);
  const facts = [model.dataset, model.accuracy != null && percent(model.accuracy, 2) + " test accuracy",
                 model.classes.length > 0 && count(model.classes.length) + " classes"];
  setText(byId("subtitle"), facts.filter(Boolean).join(", "));
}

function build() {
  const [height, width, channels] = model.shape;
  byId("upload").hidden = byId("seen").hidden = !isImage();
  byId("table").hidden = isImage();
  byId("draw").hidden = byId("turn-label").hidden = !isImage() || channels !== 1;
  document.querySelector(".skip").hidden = byId("draw").hidden;
  byId("bars").replaceChildren();
  byId("asking").hidden = false;
  showNothing();
  if (!isImage()) {
    makeForm();
    ask(row());
    return;
  }
  Object.assign(byId("picture"), {width, height});
  setText(byId("size"), `${width} × ${height} pixels, ${channels === 1 ? "grey" : "colour"}`);
  pad ??= new Pad(byId("pad"), drawn, sayQuietly);
  pad.draw();
  byId("centre-label").hidden = !isLikeMnist();
  if (bitmap) askPicture(ofFile());
  else drawn();
}

// Announces that another version answers now. Its accuracy may arrive a little later.
let hasNews = false;
function tellNews() {
  if (!hasNews) return;
  setText(byId("news"), `Version ${model.version} is now serving` +
          (model.accuracy != null ? `; test accuracy ${percent(model.accuracy, 2)}.` : "."));
}

let looking = false;
async function look() {
  if (looking) return;
  looking = true;
  try {
    const reply = await fetch("/v1/page");
    const found = await reply.json();
    hear(found);
  } catch {
    link("lost", "no response; retrying");
  }
  looking = false;
}

function hear(found) {
  if (!found.ready) {
    link("waiting", "no model yet");
    setText(byId("name"), found.name);
    return;
  }
  link("live", "live");
  const old = model;
  const shape = found.kind === "image" ? [found.height, found.width, found.channels] : [found.inputs];
  model = {...found, shape};
  describe();
  const form = (each) => JSON.stringify([each?.kind, each?.shape, each?.classes, each?.columns]);
  if (form(old) !== form(model)) build();
  const isNew = old !== null && old.version !== model.version;
  hasNews ||= isNew;
  tellNews();
  if (isNew && asked) ask([...asked]);
}

async function lookOn() {
  for (;;) {
    if (!document.hidden) await look();
    await sleep(LOOK_MS);
  }
}

byId("undo").addEventListener("click", () => pad.undo());
byId("clear").addEventListener("click", () => pad.clear());
byId("file").addEventListener("change", (event) => take(event.target.files[0]));
for (const way of ["turn", "centre"]) byId(way).addEventListener("change", () => bitmap && askPicture(ofFile()));
byId("columns").addEventListener("input", () => ask(row()));
byId("columns").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.toggleAttribute("data-drop", true);
});
document.addEventListener("dragleave", () => document.body.toggleAttribute("data-drop", false));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.toggleAttribute("data-drop", false);
  take(event.dataTransfer.files[0]);
});
lookOn();
