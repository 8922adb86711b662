// Converts strokes into a model's input as MNIST's images were made: scales the ink to a box of 20 of
// 28 pixels, keeping its proportions, and moves its centre of mass to the middle of pixel 14 (measured
// in MNIST's files: 14.5 of 28). White on black.
// The pen has MNIST's width whatever the size of the drawing. Uses no element and no canvas, so the
// bytes are the same in every browser.

export const BOX = 20 / 28;  // share of the smaller side
const PEN = 1.3 / 28;  // half the pen's width, as a share of the smaller side
const EDGE = 1.2;  // pixels over which ink fades
const DOT = 0.05;  // share of the field: a smaller drawing is scaled as if it were that large

// A stroke is a list of [x, y], from 0 to 1 across and down the field.
function box(strokes) {
  const points = strokes.flat();
  const of = (axis) => {
    const all = points.map((point) => point[axis]);
    return [Math.min(...all), Math.max(...all)];
  };
  const [left, right] = of(0);
  const [top, bottom] = of(1);
  return {x: (left + right) / 2, y: (top + bottom) / 2, size: Math.max(right - left, bottom - top, DOT)};
}

// Distance of (x, y) from the segment between two points.
function distance(x, y, [ax, ay], [bx, by]) {
  const dx = bx - ax;
  const dy = by - ay;
  const length = dx * dx + dy * dy;
  const at = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length));
  return Math.hypot(x - ax - at * dx, y - ay - at * dy);
}

// Renders segments, given in pixels, as ink from 0 to 1: [height, width].
function ink(lines, height, width, pen) {
  const pixels = new Float32Array(height * width);
  const reach = pen + EDGE;
  for (const [a, b] of lines) {
    const first = (axis) => Math.max(0, Math.floor(Math.min(a[axis], b[axis]) - reach));
    const last = (axis, size) => Math.min(size - 1, Math.ceil(Math.max(a[axis], b[axis]) + reach));
    for (let y = first(1); y <= last(1, height); y += 1) {
      for (let x = first(0); x <= last(0, width); x += 1) {
        const dark = (pen + EDGE / 2 - distance(x + 0.5, y + 0.5, a, b)) / EDGE;
        const at = y * width + x;
        if (dark > pixels[at]) pixels[at] = Math.min(1, dark);
      }
    }
  }
  return pixels;
}

export function centreOfMass(pixels, width) {
  let mass = 0;
  let x = 0;
  let y = 0;
  pixels.forEach((dark, at) => {
    mass += dark;
    x += dark * (at % width + 0.5);
    y += dark * (Math.floor(at / width) + 0.5);
  });
  return [x / mass, y / mass];
}

// Target position of the centre of mass along a side of `size` pixels.
export const middle = (size) => Math.floor(size / 2) + 0.5;

// Returns [height, width] bytes; null for no strokes.
export function picture(strokes, height, width) {
  if (strokes.length === 0) return null;
  const side = Math.min(height, width);
  const pen = PEN * side;
  const {x, y, size} = box(strokes);
  const scale = (BOX * side - 2 * pen) / size;
  const lines = (moveX, moveY) => strokes.flatMap((stroke) => {
    const points = stroke.map((point) => [(point[0] - x) * scale + moveX, (point[1] - y) * scale + moveY]);
    return points.length === 1 ? [[points[0], points[0]]] : points.slice(1).map((point, at) => [points[at], point]);
  });
  const [massX, massY] = centreOfMass(ink(lines(width / 2, height / 2), height, width, pen), width);
  const moved = ink(lines(width / 2 + middle(width) - massX, height / 2 + middle(height) - massY), height, width, pen);
  return Uint8Array.from(moved, (dark) => Math.round(255 * dark));
}
