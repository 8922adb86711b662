// Charts over the steps, each with a table of the same values.

import {byId, make, setAttribute, table, count, number, day} from "./dom.js";

const HEIGHT = 210;    // pixels, without the legend
const MOST_ROWS = 40;  // of a table: the newest step and others evenly spread over the run

// Dashes and marks differ, so that curves can be distinguished without colours.
const CURVES = {
  loss: [["loss", "training", "--one", []], ["validation_loss", "validation", "--two", [8, 4]],
         ["test_loss", "test", "--three", [2, 3]]],
  accuracy: [["accuracy", "training", "--one", [10, 3, 2, 3]],
             ["validation_accuracy", "validation", "--two", [8, 4]],
             ["test_accuracy", "test", "--three", []],
             ["validation_absolute_error", "validation", "--two", [8, 4]],
             ["test_absolute_error", "test", "--three", []]],
  rate: [["images_per_second", "images a second", "--one", []]],
  learning: [["learning_rate", "learning rate", "--one", []]],
};

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A custom property of style.css, resolved for the current theme, or a literal colour.
const strokeOf = (stroke) => stroke.startsWith("--") ? color(stroke) : stroke;

// Fits the longest label of an axis: a learning rate may be 0.000125.
function axisSize(plot, labels, index, cycle) {
  const axis = plot.axes[index];
  if (cycle > 1) return axis._size;  // else the axes resize each other without end
  plot.ctx.font = axis.font[0];
  const widths = (labels ?? []).map((label) => plot.ctx.measureText(label).width / devicePixelRatio);
  return Math.ceil(Math.max(40, axis.ticks.size + axis.gap + Math.max(0, ...widths) + 4));
}

class Chart {
  constructor(name, curves, place = byId(name)) {
    this.name = name;
    this.curves = curves;
    this.place = place;
    this.drawing = make("div", {class: "plot", role: "img"});
    this.rows = make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": name + " as a table"});
    this.details = make("details", {}, make("summary", {text: "As a table"}), this.rows);
    this.none = make("p", {class: "none", text: "No measurements yet."});
    this.details.addEventListener("toggle", () => this.fillTable());
    this.place.append(this.none);
    this.plot = null;
    this.isLogarithmic = false;
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  options(width) {
    const axis = {stroke: color("--dim"), grid: {stroke: color("--grid"), width: 1},
                  ticks: {stroke: color("--grid"), width: 1}};
    const values = (_, ticks) => ticks.map((each) => each === null ? "" : number(each, 6));
    return {
      width, height: HEIGHT,
      scales: {x: {time: false}, y: {distr: this.isLogarithmic ? 3 : 1}},
      axes: [{...axis, values: (_, ticks) => ticks.map(count)}, {...axis, values, size: axisSize}],
      legend: {show: true},
      series: [{label: "step", value: (_, value) => count(value)}].concat(
          this.drawn.map(([name, label, stroke, dash]) => ({
            label, stroke: strokeOf(stroke), width: 1.5, dash, spanGaps: true,
            points: {show: name.includes("_") && this.series[name].length < 60},
            value: (_, value) => number(value),
          }))),
    };
  }

  get width() { return Math.max(200, this.place.clientWidth); }

  draw(series) {
    this.series = series;
    const drawn = this.curves.filter(([name]) => series[name]?.length > 0);
    if (drawn.length === 0) return this.clear();
    const data = uPlot.join(drawn.map(([name]) => [series[name].steps, this.shown(series[name].values)]));
    const shape = drawn.map(([name]) => name + (series[name].length < 60)).join();
    this.drawn = drawn;
    if (!this.plot || this.shape !== shape) {
      this.plot?.destroy();
      if (!this.drawing.isConnected) this.place.replaceChildren(this.drawing, this.details);
      this.plot = new uPlot(this.options(this.width), data, this.drawing);
      this.shape = shape;
    } else {
      this.plot.setData(data);
      this.resize();
    }
    setAttribute(this.drawing, "aria-label", this.summary());
    if (this.details.open) this.fillTable();
  }

  // Omits values that have no logarithm.
  shown(values) {
    return this.isLogarithmic ? values.map((value) => value > 0 ? value : null) : values;
  }

  summary() {
    return this.drawn.map(([name, label]) => {
      const series = this.series[name];
      return label + " " + number(series.last) + " at step " + count(series.steps[series.length - 1]);
    }).join("; ");
  }

  clear() {
    this.plot?.destroy();
    this.plot = null;
    this.shape = "";
    if (!this.none.isConnected) this.place.replaceChildren(this.none);
  }

  // Redraws in another theme or on another scale.
  again() {
    this.shape = "";
    if (this.plot) this.draw(this.series);
  }

  resize() {
    if (this.plot && this.plot.width !== this.width) this.plot.setSize({width: this.width, height: HEIGHT});
  }

  fillTable() {
    if (!this.details.open || !this.plot) return;
    const byStep = new Map();
    for (const [name] of this.drawn) {
      const {steps, times, values} = this.series[name];
      for (let at = 0; at < steps.length; ++at) {
        if (!byStep.has(steps[at])) byStep.set(steps[at], {time: times[at]});
        byStep.get(steps[at])[name] = values[at];
      }
    }
    const steps = [...byStep.keys()].sort((a, b) => b - a);
    const every = Math.max(1, Math.ceil(steps.length / MOST_ROWS));
    const rows = steps.filter((_, at) => at % every === 0).map((step) => {
      const row = byStep.get(step);
      return [count(step), ...this.drawn.map(([name]) => number(row[name])), day(row.time)];
    });
    this.rows.replaceChildren(table(["step#", ...this.drawn.map(([, label]) => label + "#"), "time"], rows));
  }
}

// A chart of a number that a user's program reports with steps, evaluations or both, as `base`.
function makeNumberChart(base, at) {
  const place = make("div", {class: "chart"});
  byId("curves").append(make("section", {"aria-labelledby": "number-" + at},
                             make("h2", {id: "number-" + at, text: base}), place));
  return new Chart(base, [[base, "training", "--one", []], ["validation_" + base, "validation", "--two", [8, 4]],
                          ["test_" + base, "test", "--three", [2, 3]]], place);
}

// `curves`: by chart, for each curve [name of its series, label, colour, dashes].
export function makeCharts(curves = CURVES) {
  const charts = Object.keys(CURVES).map((name) => new Chart(name, curves[name]));
  byId("loss-log").addEventListener("change", (event) => {
    charts[0].isLogarithmic = event.target.checked;
    charts[0].again();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of charts) chart.again();
  });
  return {
    draw: (series, isProgram = false) => {
      if (isProgram) charts.find((chart) => chart.name === "rate").curves[0][1] = "rows a second";
      for (const name of isProgram ? Object.keys(series) : []) {
        if (charts.some((chart) => chart.curves.some(([drawn]) => drawn === name))) continue;
        charts.push(makeNumberChart(name.replace(/^(validation|test)_(?=.)/, ""), charts.length));
      }
      for (const chart of charts) chart.draw(series);
      if (series.test_absolute_error?.length) byId("accuracy-title").textContent = "Mean absolute error";
    },
  };
}
