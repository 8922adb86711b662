// Fits a plane to points: 100 rows of 4 numbers.
//
//   npm install && disttf launch --program -- node quadratic.mjs
import { Run } from './disttf.mjs';

const f32 = Math.fround; // JavaScript computes with 64 bits; this rounds to the 32 of the other clients
const count = 100, columns = 4;
const x = [], y = new Float32Array(count);
let state = 1;
for (let row = 0; row < count; ++row) {
  x.push(new Float32Array(columns));
  for (let column = 0; column < columns; ++column) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    x[row][column] = (state >>> 8) / (1 << 23) - 1;
    y[row] += f32((column + 1) * x[row][column]);
  }
}

const w = { name: 'w', shape: [columns], decays: true };
const b = { name: 'b', shape: [], decays: false };

function errorOf(row) {
  let found = f32(b.parameters[0] - y[row]);
  x[row].forEach((value, column) => { found = f32(found + f32(w.parameters[column] * value)); });
  return found;
}

function writeZeros() {
  w.gradient.fill(0);
  b.gradient.fill(0);
}

function evaluate() {
  let loss = 0;
  for (let row = 0; row < count; ++row) {
    const error = errorOf(row);
    loss += f32(error * error) / count;
  }
  return { loss };
}

const variables = [w, b];
const run = new Run({ client: 'quadratic.mjs 1.0', rows: count, variables, writeInitial: writeZeros, evaluate });
for (const { rows } of run) {
  let loss = 0;
  writeZeros();
  for (const row of rows) {
    const error = errorOf(row), share = f32(f32(2 * error) / rows.length);
    loss += f32(error * error) / rows.length;
    x[row].forEach((value, column) => { w.gradient[column] += f32(share * value); });
    b.gradient[0] += share;
  }
  run.push(loss);
}
console.log(`w ${Array.from(w.parameters, (value) => value.toFixed(3)).join(' ')}`);
