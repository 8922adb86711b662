#include "data/own/column_summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace disttf::data {

ColumnSums::ColumnSums(const std::vector<std::string>& names)
    : columns_(names.size()), moments_(names.size()) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    columns_[i].name = names[i];
  }
}

void ColumnSums::add(std::span<const float> numbers) {
  const std::size_t columns = columns_.size();
  const std::size_t rows = numbers.size() / columns;
  if (rows == 0) {
    return;
  }
  // Two passes over a block: first its means, then the squared deviations from them, which lose no
  // digits to cancellation.
  std::vector<Moments> block(columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ColumnSummary& column = columns_[i % columns];
    column.least = std::min(column.least, numbers[i]);
    column.most = std::max(column.most, numbers[i]);
    block[i % columns].mean += static_cast<double>(numbers[i]);
  }
  for (Moments& each : block) {
    each.mean /= static_cast<double>(rows);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double difference = static_cast<double>(numbers[i]) - block[i % columns].mean;
    block[i % columns].squares += difference * difference;
  }
  // Combines the block with the rows before it (Chan, Golub and LeVeque, Algorithms for computing
  // the sample variance, 1983).
  const auto before = static_cast<double>(rows_);
  const auto now = static_cast<double>(rows);
  const double all = before + now;
  for (std::size_t i = 0; i < columns; ++i) {
    const double difference = block[i].mean - moments_[i].mean;
    moments_[i].mean += difference * now / all;
    moments_[i].squares += block[i].squares + difference * difference * before * now / all;
  }
  rows_ += rows;
}

std::vector<ColumnSummary> ColumnSums::summaries() const {
  std::vector<ColumnSummary> result = columns_;
  for (std::size_t i = 0; i < result.size() && rows_ != 0; ++i) {
    result[i].mean = moments_[i].mean;
    result[i].deviation = std::sqrt(moments_[i].squares / static_cast<double>(rows_));
  }
  return result;
}

void RowCounters::add(std::span<const float> numbers) {
  const std::size_t columns = last_.size();
  for (std::size_t i = 0; i < numbers.size(); i += columns) {
    for (std::size_t column = 0; column < columns; ++column) {
      const float number = numbers[i + column];
      still_[column] = still_[column] && (rows_ == 0 || number == last_[column] + 1);
      last_[column] = number;
    }
    ++rows_;
  }
}

}  // namespace disttf::data
