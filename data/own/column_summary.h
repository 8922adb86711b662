// What the numbers of a column are like: of the rows that are trained on; but whether it counts
// rows is seen of all of them.
//
// Values; callable from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace disttf::data {

struct ColumnSummary {
  std::string name;
  float least = std::numeric_limits<float>::max();
  float most = std::numeric_limits<float>::lowest();
  double mean = 0;
  double deviation = 0;      // sqrt of the mean square of what is left without the mean
  bool counts_rows = false;  // RowCounters::counts()
};

// Adds up rows as they come. Sums are made in double, of each block by itself in the rows' order,
// and merged in the blocks' order (Chan, Golub, LeVeque: Updating Formulae, 1979), so that they are
// the same whenever rows and blocks are.
class ColumnSums {
 public:
  explicit ColumnSums(const std::vector<std::string>& names);

  // `numbers`: [rows, columns], as many columns as names.
  void add(std::span<const float> numbers);
  // Of all rows so far.
  [[nodiscard]] std::vector<ColumnSummary> summaries() const;

 private:
  struct Moments {
    double mean = 0;
    double squares = 0;  // sum of (x - mean)^2
  };
  std::vector<ColumnSummary> columns_;
  std::vector<Moments> moments_;
  std::uint64_t rows_ = 0;
};

// Which columns count the rows of the files, each number the one before it and 1: identifiers, it
// seems.
class RowCounters {
 public:
  explicit RowCounters(std::size_t columns) : still_(columns, true), last_(columns) {}

  // All rows, as they come.
  void add(std::span<const float> numbers);
  [[nodiscard]] bool counts(std::size_t column) const { return rows_ > 2 && still_[column]; }

 private:
  std::vector<bool> still_;
  std::vector<float> last_;  // row
  std::uint64_t rows_ = 0;
};

}  // namespace disttf::data
