// Statistics of a column's numbers, over the training rows; only the row-counter check covers all
// rows.
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
  double deviation = 0;      // standard deviation (population)
  bool counts_rows = false;  // RowCounters::counts()
};

// Accumulates rows. Sums are computed in double per block, in row order, and merged in block order
// (Chan, Golub, LeVeque: Updating Formulae, 1979), so the result depends only on the rows and the
// blocks.
class ColumnSums {
 public:
  explicit ColumnSums(const std::vector<std::string>& names);

  // `numbers`: [rows, columns], as many columns as names.
  void add(std::span<const float> numbers);
  // Returns the statistics of all rows so far.
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

// Detects columns that count the rows of the files, where each number is the previous one plus 1:
// probably identifiers.
class RowCounters {
 public:
  explicit RowCounters(std::size_t columns) : still_(columns, true), last_(columns) {}

  // Adds the next rows; call it for all rows, in order.
  void add(std::span<const float> numbers);
  [[nodiscard]] bool counts(std::size_t column) const { return rows_ > 2 && still_[column]; }

 private:
  std::vector<bool> still_;
  std::vector<float> last_;  // row
  std::uint64_t rows_ = 0;
};

}  // namespace disttf::data
