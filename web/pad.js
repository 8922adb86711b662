// A field to draw on. Mouse, finger and pen all send pointer events; the keyboard moves a pen of its
// own. A drawing is a list of strokes; a stroke is a list of [x, y], from 0 to 1 across and down.

const LINE = 0.055;  // line width, as a share of the field's side
const STEP = 0.04;  // of an arrow key, as a share of the field's side
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

export class Pad {
  // `changed` is called when the strokes change; `say` announces text to a screen reader.
  constructor(canvas, changed, say) {
    this.canvas = canvas;
    this.changed = changed;
    this.say = say;
    this.strokes = [];
    this.at = [0.5, 0.5];  // the keyboard's pen
    this.isDown = false;
    this.isShown = false;
    this.held = new Set();  // pressed arrow keys: two of them move diagonally
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const over of ["pointerup", "pointercancel"]) canvas.addEventListener(over, () => { this.pointer = null; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("keyup", (event) => this.held.delete(event.key));
    canvas.addEventListener("blur", () => this.lift());
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  place(event) {
    const field = this.canvas.getBoundingClientRect();
    const inside = (value) => Math.min(1, Math.max(0, value));
    return [inside((event.clientX - field.left) / field.width), inside((event.clientY - field.top) / field.height)];
  }

  begin(event) {
    if (event.button !== 0 || this.pointer != null) return;
    this.pointer = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.lift();
    this.strokes.push([this.place(event)]);
    this.drawn();
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length > 0 ? passed : [event]) this.strokes.at(-1)?.push(this.place(each));
    this.drawn();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS[event.key]) this.step(event);
    else if (event.key === " ") this.toggle();
    else if (event.key === "Backspace" || event.key === "Delete") this.undo();
    else if (event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
  }

  step(event) {
    this.held.add(event.key);
    const size = event.shiftKey ? STEP / 4 : STEP;
    for (const key of this.held) {
      ARROWS[key].forEach((way, axis) => { this.at[axis] = Math.min(1, Math.max(0, this.at[axis] + way * size)); });
    }
    this.isShown = true;
    if (this.isDown) this.strokes.at(-1).push([...this.at]);
    if (this.isDown) this.drawn();
    else this.draw();
  }

  toggle() {
    this.isShown = true;
    this.isDown = !this.isDown;
    this.say("pen " + (this.isDown ? "down" : "up") + ", " + Math.round(100 * this.at[0]) + " across, " +
             Math.round(100 * this.at[1]) + " down");
    if (this.isDown) this.strokes.push([[...this.at]]);
    this.drawn();
  }

  lift() {
    this.held.clear();
    this.isDown = false;
    this.isShown = false;
    this.draw();
  }

  undo() {
    this.isDown = false;
    this.strokes.pop();
    this.drawn();
  }

  clear() {
    this.isDown = false;
    this.strokes = [];
    this.drawn();
  }

  drawn() {
    this.draw();
    this.changed();
  }

  draw() {
    const canvas = this.canvas;
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (side === 0) return;
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, side, side);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(canvas).color;
    pen.lineCap = pen.lineJoin = "round";
    pen.lineWidth = LINE * side;
    for (const stroke of this.strokes) {
      pen.beginPath();
      pen.moveTo(side * stroke[0][0], side * stroke[0][1]);
      for (const [x, y] of stroke) pen.lineTo(side * x, side * y);
      pen.stroke();
    }
    if (!this.isShown) return;
    pen.beginPath();
    pen.lineWidth = 2 * devicePixelRatio;
    pen.arc(side * this.at[0], side * this.at[1], LINE * side * (this.isDown ? 0.7 : 1), 0, 7);
    pen.stroke();
  }
}
