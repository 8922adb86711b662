// The state of a run: initialized with the view that the server sends first, then updated by one record
// after the other. Every list is bounded, however long a run lasts.

export const MOST_POINTS = 2000;
const MOST_EVENTS = 500;
const MOST_CHECKPOINTS = 200;
const MOST_TASKS = 2000;
const MOST_WRONG = 25;
const MOST_FILTERS = 64;
const MOST_SERIES = 128;

// Every run has these; a user's program may tell other numbers.
export const NAMES = ["loss", "learning_rate", "images_per_second", "validation_loss",
               "validation_accuracy", "test_loss", "test_accuracy", "validation_absolute_error",
               "test_absolute_error"];

// A curve of bounded length. When it is full, it drops every second point, and from then on keeps only
// every second new one; it always contains the newest.
export class Series {
  constructor(from = {}) {
    this.steps = [...(from.steps ?? [])];
    this.times = [...(from.times ?? [])];
    this.values = [...(from.values ?? [])];
    this.stride = 1;
    this.phase = 0;
  }
  get length() { return this.steps.length; }
  get last() { return this.values[this.length - 1]; }

  push(step, time, value) {
    if (typeof value !== "number") return;
    if (this.phase !== 0) this.#cut(this.length - 1);
    this.phase = (this.phase + 1) % this.stride;
    this.steps.push(step);
    this.times.push(time);
    this.values.push(value);
    if (this.length >= MOST_POINTS) this.#halve();
  }
  // Drops the points from `step` on: a run that restores a checkpoint repeats those steps.
  dropFrom(step) {
    let end = this.length;
    while (end > 0 && this.steps[end - 1] >= step) end -= 1;
    if (end === this.length) return;
    this.#cut(end);
    this.phase = 0;
  }
  #cut(end) {
    this.steps.length = end;
    this.times.length = end;
    this.values.length = end;
  }
  #halve() {
    const isKept = (_, at) => at % 2 === 0 || at + 1 === this.length;
    const keeps = this.steps.map(isKept);
    for (const name of ["steps", "times", "values"]) {
      this[name] = this[name].filter((_, at) => keeps[at]);
    }
    this.stride *= 2;
    this.phase = 0;
  }
}

export class RunState {
  constructor() { this.replace({}); }

  // Replaces everything with the view.
  replace(view) {
    this.run = view.run ?? {};
    this.now = view.now ?? {};
    this.series = Object.create(null);  // a program chooses names
    for (const name of NAMES) this.series[name] = new Series(view.series?.[name]);
    for (const name of Object.keys(view.series ?? {})) this.#number(name, view.series[name]);
    this.tasks = new Map();
    for (const task of view.tasks ?? []) this.#task(task);
    this.frontier = view.frontier ?? null;
    this.checkpoints = (view.checkpoints ?? []).slice(-MOST_CHECKPOINTS);
    this.events = (view.events ?? []).slice(-MOST_EVENTS);
    this.confusion = view.confusion?.counts?.length ? view.confusion : null;
    this.pictures = {wrong: (view.pictures?.wrong ?? []).slice(0, MOST_WRONG),
                     filters: (view.pictures?.filters ?? []).slice(0, MOST_FILTERS)};
    this.result = view.result ?? null;
    this.changed = new Set(["run", "series", "tasks", "checkpoints", "events", "confusion",
                            "pictures"]);
  }

  // Applies one record and adds what it changed to `changed`.
  apply(record) {
    this["on_" + record.kind]?.(record);
  }
  // Returns the names of what has changed since the last call.
  takeChanges() {
    const changed = this.changed;
    this.changed = new Set();
    return changed;
  }

  on_run(record) {
    const {kind, ...run} = record;
    const state = this.result ? "training" : this.run.state ?? "training";  // a run may resume after a result
    this.run = {...run, began: this.run.began ?? record.time, state};
    for (const series of Object.values(this.series)) series.dropFrom((record.step ?? 0) + 1);
    this.result = null;
    this.changed.add("run").add("series");
  }
  on_state(record) {
    this.run.state = record.state;
    this.changed.add("run");
  }
  on_step(record) {
    this.now = record;
    for (const name of ["loss", "learning_rate", "images_per_second"]) {
      this.series[name].push(record.step, record.time, record[name]);
    }
    this.#numbers("", record, record.numbers);
    this.changed.add("run").add("series");
  }
  on_evaluation(record) {
    for (const set of ["validation", "test"]) {
      for (const [name, value] of Object.entries(record[set] ?? {})) {
        this.series[set + "_" + name]?.push(record.step, record.time, value);
      }
      this.#numbers(set + "_", record, record[set]?.numbers);
    }
    this.changed.add("series");
  }
  #numbers(prefix, record, numbers) {
    for (const [name, value] of Object.entries(numbers ?? {})) {
      if (typeof value === "number" && !NAMES.includes(prefix + name)) {
        this.#number(prefix + name)?.push(record.step, record.time, value);
      }
    }
  }
  // Returns the series of a program's number, which begins with `from`; undefined: there are too many.
  #number(name, from) {
    if (!this.series[name] && Object.keys(this.series).length < MOST_SERIES) this.series[name] = new Series(from);
    return this.series[name];
  }
  on_confusion(record) {
    if (this.confusion?.step !== record.step) {
      this.confusion = {step: record.step, classes: this.run.classes ?? [], counts: []};
    }
    if (record.class >= 0 && record.class < 1000) this.confusion.counts[record.class] = record.counts;
    this.changed.add("confusion");
  }
  on_task(record) { this.#task(record); }
  on_metrics(record) { this.#task(record); }
  #task(record) {
    const {kind, ...fields} = record;
    if (!this.tasks.has(record.task) && this.tasks.size >= MOST_TASKS) return;
    if (kind === "metrics") fields.heard = record.time;
    this.tasks.set(record.task, {...this.tasks.get(record.task), ...fields});
    this.changed?.add("tasks");
  }
  on_frontier(record) {
    this.frontier = record;
    this.changed.add("tasks");
  }
  on_checkpoint(record) {
    this.checkpoints.push(record);
    if (this.checkpoints.length > MOST_CHECKPOINTS) this.checkpoints.shift();
    this.changed.add("checkpoints");
  }
  on_event(record) {
    this.events.push(record);
    if (this.events.length > MOST_EVENTS) this.events.shift();
    this.changed.add("events");
  }
  on_picture(record) {
    const most = {wrong: MOST_WRONG, filters: MOST_FILTERS}[record.set];
    if (most === undefined || !(record.index >= 0 && record.index < most)) return;
    const pictures = this.pictures[record.set];
    if (pictures.length && pictures.some((each) => each && each.step !== record.step)) pictures.length = 0;
    pictures[record.index] = record;
    this.changed.add("pictures");
  }
  on_result(record) {
    this.result = record;
    this.run.state = "finished";
    this.changed.add("run");
  }

  // Time of the newest observation.
  get time() { return Math.max(this.now.time ?? 0, this.frontier?.time ?? 0, this.events.at(-1)?.time ?? 0); }

  // Whether a user's program trains: its examples are rows.
  get isProgram() { return this.run.model === "program"; }

  get isOver() { return ["finished", "ending", "ended"].includes(this.run.state); }

  // The tasks in the order ps, chief, worker, each by number.
  get tasksInOrder() {
    const rank = (name) => ["ps", "chief", "worker"].indexOf(name.split(":")[0]);
    return [...this.tasks.values()].sort(
        (a, b) => rank(a.task) - rank(b.task) ||
                  Number(a.task.split(":")[1]) - Number(b.task.split(":")[1]));
  }

  // Describes what a task is doing.
  doing(task) {
    const state = task.state ?? "running";
    if (state !== "running") return {waiting: "waiting to restart", stopping: "stopping", frozen: "suspended",
                                     done: "done", ended: "exited"}[state] ?? state;
    if (this.isOver) return "";
    if (task.standing === "backup") return "replicates the primary" + (task.lag_updates ? ", " + task.lag_updates + " updates behind" : "");
    const stages = Object.entries(task.stages ?? {}).filter(([stage]) => stage !== "overlapped")
                         .sort((a, b) => b[1] - a[1]);
    if (!stages.length || !stages[0][1]) return task.heard ? "computes" : task.doing ?? "starting";
    const waits = task.stages.wait ?? 0;
    const computes = stages.reduce((sum, [stage, each]) => sum + (stage === "wait" ? 0 : each), 0);
    const slowest = this.frontier?.slowest?.task;
    if (slowest && slowest !== task.task && waits > computes / 10) return "waits for " + slowest;
    if (waits > computes) return "waits for " + (this.#mostLate(task.task) ?? "the others");
    const most = stages.find(([stage]) => stage !== "wait")?.[0];
    return most === "apply" ? "applies gradients" : "computes: " + most;
  }
  // Returns the trainer that waits least: the others wait for it.
  #mostLate(asking) {
    let late = null;
    for (const task of this.tasks.values()) {
      const wait = task.stages?.wait;
      if (task.task !== asking && wait !== undefined && (!late || wait < late.stages.wait)) late = task;
    }
    return late?.task;
  }
}
