// Prints each benchmark as a line for people, beside its floor, and as one JSON line for scripts.
//
// A benchmark names its floor in its label, "floor=NAME": the cost of the same bytes or the same
// products without disttf. A ratio compares medians over the repetitions of one run of the program;
// figures of two runs are not comparable on a shared machine. If the two sides ran in pairs, the
// ratio is the median over the pairs, because other load on the machine affects both sides of a
// pair.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace disttf::bench {

// One figure, from Google Benchmark or measured by hand (the whole job).
struct Figure {
  std::string name;
  double median = 0;
  double slowest = 0;
  std::string unit;   // "us", "images/s"
  std::string floor;  // the name of another figure in the same unit; empty: this is a floor itself
  std::optional<double> ratio;           // to the floor, if it is not that of the two medians
  std::map<std::string, double> extras;  // e.g. accuracy
};

class Reporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override;     // NOLINT(readability-identifier-naming)
  void ReportRuns(const std::vector<Run>& runs) override;  // NOLINT(readability-identifier-naming)

  // Prints the figure at once. REQUIRES: its floor was added before.
  void add(const Figure& figure);

 private:
  std::map<std::string, Figure> figures_;
};

// Returns the median; for an even number of values, the mean of the two middle ones. REQUIRES: not
// empty.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace disttf::bench
