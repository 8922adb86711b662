// Converts a picture of a digit into a model's input as MNIST's images were made, like strokes.js does
// for drawings: scales the ink to fit the box, keeping its proportions, and moves its centre of mass
// to the middle. Uses no element and no canvas.
import {BOX, centreOfMass, middle} from "/assets/strokes.js";

const FAINT = 0.2;  // share of the strongest ink below which a pixel does not count for the box
const SAMPLES = 4;  // minimum samples per pixel in each direction

// The values along the edges of [height, width].
export function rim(values, height, width) {
  return Array.from(values).filter((_, at) => {
    const x = at % width;
    const y = (at - x) / width;
    return x === 0 || y === 0 || x === width - 1 || y === height - 1;
  });
}

// Converts light levels to ink: 0 for the median of the rim, 1 for the lightest pixel. Null if all are
// as dark as the rim.
function inkOf(levels, height, width) {
  const edge = rim(levels, height, width).sort((a, b) => a - b);
  const ground = edge[edge.length >> 1];
  const most = levels.reduce((a, b) => Math.max(a, b), 0);
  return most > ground ? Float32Array.from(levels, (level) => Math.max(0, (level - ground) / (most - ground))) : null;
}

function box(ink, width) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  ink.forEach((dark, at) => {
    if (dark < FAINT) return;
    const x = at % width;
    const y = (at - x) / width;
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x + 1), Math.min(top, y), Math.max(bottom, y + 1)];
  });
  return {x: (left + right) / 2, y: (top + bottom) / 2, size: Math.max(right - left, bottom - top)};
}

// Bilinear interpolation between the centres of pixels; 0 beyond the edges.
function inkAt(ink, height, width, x, y) {
  const left = Math.floor(x - 0.5);
  const top = Math.floor(y - 0.5);
  const at = (column, line) =>
    column < 0 || line < 0 || column >= width || line >= height ? 0 : ink[line * width + column];
  const right = x - 0.5 - left;
  const low = y - 0.5 - top;
  return (1 - low) * ((1 - right) * at(left, top) + right * at(left + 1, top)) +
         low * ((1 - right) * at(left, top + 1) + right * at(left + 1, top + 1));
}

// Returns the bytes for a model of [toHeight, toWidth]; null where there is no ink. `levels`: [height,
// width] of any size, light ink on a dark ground.
export function centred(levels, height, width, toHeight, toWidth) {
  const ink = inkOf(levels, height, width);
  if (ink === null) return null;
  const {x, y, size} = box(ink, width);
  const scale = BOX * Math.min(toHeight, toWidth) / size;
  const samples = Math.max(SAMPLES, Math.ceil(1 / scale));
  // The ink with the middle of its box at that position.
  const moved = (moveX, moveY) => Float32Array.from({length: toHeight * toWidth}, (_, at) => {
    let sum = 0;
    for (let each = 0; each < samples * samples; each += 1) {
      const column = at % toWidth + (each % samples + 0.5) / samples;
      const line = Math.floor(at / toWidth) + (Math.floor(each / samples) + 0.5) / samples;
      sum += inkAt(ink, height, width, (column - moveX) / scale + x, (line - moveY) / scale + y);
    }
    return sum / samples ** 2;
  });
  const [massX, massY] = centreOfMass(moved(toWidth / 2, toHeight / 2), toWidth);
  const seen = moved(toWidth / 2 + middle(toWidth) - massX, toHeight / 2 + middle(toHeight) - massY);
  return Uint8Array.from(seen, (dark) => Math.round(255 * dark));
}
