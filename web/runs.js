// Compares several recorded runs: their curves in shared charts, and a table row for each. Polls for
// new records and fetches the runs that have any.

import {byId, make, setText, setAttribute, table, count, number, percent} from "./dom.js";
import {makeCharts} from "./charts.js";
import {RunState, Series} from "./state.js";

const LOOK_MS = 2000;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
// A chart shows the first of these series that a run has.
const SHOWN = {
  loss: ["loss", "validation_loss", "test_loss"],
  accuracy: ["test_accuracy", "validation_accuracy", "test_absolute_error", "validation_absolute_error"],
  rate: ["images_per_second"],
  learning: ["learning_rate"],
};

// Well-separated hues of a lightness that suits both themes; dashes differ, too.
const lineOf = (at) => ["hsl(" + Math.round(at * 137.5) % 360 + " 65% 48%)", DASHES[at % DASHES.length]];

// Shortens paths to the shortest unique suffixes of whole components.
export function shortNames(names) {
  const parts = names.map((name) => name.split("/").filter(Boolean));
  const end = (at, length) => parts[at].slice(-length).join("/");
  return names.map((name, at) => {
    for (let length = 1; length < parts[at].length; ++length) {
      if (names.every((_, other) => other === at || end(other, length) !== end(at, length))) return end(at, length);
    }
    return name;
  });
}

export class Runs {
  constructor(shown) {
    this.names = shortNames(shown.map((each) => each.name));
    this.runs = shown.map(() => ({records: -1, state: new RunState()}));
    const curves = {};
    for (const chart of Object.keys(SHOWN)) {
      curves[chart] = this.names.map((name, at) => [at + "/" + chart + "_", name, ...lineOf(at)]);
    }
    this.charts = makeCharts(curves);
    document.body.dataset.view = "runs";
    document.title = shown.length + " runs · disttf";
    setText(byId("title"), shown.length + " runs");
    byId("runs").hidden = false;
    this.take(shown);
  }

  link(name, text) {
    setText(byId("link"), text);
    setAttribute(byId("link"), "data-state", name);
  }

  // `shown`: how many records each run has. Fetches those with more than before.
  async take(shown) {
    let any = false;
    try {
      for (const [at, {records}] of shown.entries()) {
        if (this.runs[at].records === records) continue;
        this.runs[at].state.replace(await fetch("/v1/run?run=" + at).then((reply) => reply.json()));
        this.runs[at].records = records;
        any = true;
      }
      this.link("waiting", "from their records");
    } catch {
      this.link("lost", "disconnected; retrying");
    }
    if (any) this.draw();
    setTimeout(() => this.look(), LOOK_MS);
  }

  // A hidden page sends no requests.
  async look() {
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => this.look(), {once: true});
      return;
    }
    const shown = await fetch("/v1/access").then((reply) => reply.json()).then((access) => access.runs ?? []).catch(() => null);
    if (shown !== null) return this.take(shown);
    this.link("lost", "disconnected; retrying");
    setTimeout(() => this.look(), LOOK_MS);
  }

  draw() {
    const series = {};
    const hasClasses = this.runs.some(({state}) => state.series.test_accuracy.length + state.series.validation_accuracy.length > 0);
    if (!hasClasses) setText(byId("accuracy-title"), "Accuracy, or mean absolute error");
    for (const [at, {state}] of this.runs.entries()) {
      for (const [chart, names] of Object.entries(SHOWN)) {
        const name = names.find((each) => state.series[each].length > 0 && !(hasClasses && each.endsWith("_error")));
        series[at + "/" + chart + "_"] = name ? state.series[name] : new Series();
      }
    }
    this.charts.draw(series);
    byId("runs-list").replaceChildren(table(
        ["run", "data set", "model", "step#", "loss#", "validation accuracy#", "test accuracy#", "state"],
        this.runs.map(({state}, at) => this.row(state, at))));
  }

  row({run, now, result, series}, at) {
    return [make("a", {href: "/?run=" + at, text: this.names[at]}), run.dataset ?? "", run.model ?? "",
            count(Math.max(now.step ?? 0, result?.step ?? 0)), number(now.loss),
            percent(series.validation_accuracy.last, 2), percent(result?.accuracy ?? series.test_accuracy.last, 2),
            run.state ?? ""];
  }
}
