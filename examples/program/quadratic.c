/* Fits a plane to points: 100 rows of 4 numbers. Build: cc -std=c99 -O2 -o quadratic quadratic.c
 * Run: disttf launch --program -- ./quadratic */
#include "disttf_program.h"

enum { kRows = 100, kColumns = 4 };
static float x[kRows][kColumns], y[kRows];
static struct disttf_variable variables[] = {{"w", "[4]", kColumns, 0, 0}, {"b", "[]", 1, 1, 0}};

static void make_data(void) {
  uint32_t state = 1;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      state = state * 1664525u + 1013904223u;
      x[row][column] = (float)(state >> 8) / (1 << 23) - 1;
      y[row] += (float)(column + 1) * x[row][column];
    }
}

static float error_of(const struct disttf_run* run, uint32_t row) {
  const float* w = run->parameters + variables[0].offset;
  float found = run->parameters[variables[1].offset] - y[row];
  for (int column = 0; column < kColumns; ++column) found += w[column] * x[row][column];
  return found;
}

static void write_initial(struct disttf_run* run) {
  for (int column = 0; column < kColumns; ++column) run->gradient[variables[0].offset + (size_t)column] = 0;
  run->gradient[variables[1].offset] = 0;
}

static void evaluate(struct disttf_run* run, char* text, size_t size) {
  double loss = 0;
  for (uint32_t row = 0; row < kRows; ++row) loss += error_of(run, row) * error_of(run, row) / kRows;
  snprintf(text, size, "{\"loss\": %.9g}", loss);
}

int main(void) {
  static struct disttf_run run;
  run.write_initial = write_initial;
  run.evaluate = evaluate;
  make_data();
  disttf_join(&run, "quadratic.c 1.0", kRows, variables, 2);
  while (disttf_next(&run)) {
    double loss = 0;
    write_initial(&run); /* zeros */
    for (size_t i = 0; i < run.row_count; ++i) {
      const float error = error_of(&run, run.rows[i]), share = 2 * error / (float)run.row_count;
      loss += error * error / (double)run.row_count;
      for (int column = 0; column < kColumns; ++column)
        run.gradient[variables[0].offset + (size_t)column] += share * x[run.rows[i]][column];
      run.gradient[variables[1].offset] += share;
    }
    disttf_push(&run, loss);
  }
  printf("w %.3f %.3f %.3f %.3f\n", run.parameters[0], run.parameters[1], run.parameters[2], run.parameters[3]);
  return 0;
}
