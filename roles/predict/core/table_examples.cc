#include "roles/predict/core/table_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/own/csv_cells.h"
#include "data/own/row_source.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using data::UnusableData;

constexpr std::size_t kLeftOut = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kLabel = kLeftOut - 1;

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name, const TrainedModel& model)
      : text_(text), name_(name), model_(model), inputs_(model.config.model.input.size()) {}

  Examples read() {
    if (text_.find('\0') != std::string_view::npos) {
      throw UnusableData(name_ + ": neither a PNG, JPEG, IDX or NPY file nor a table of text");
    }
    find_columns();
    data::CsvCells cells(text_, delimiter_);
    while (!cells.at_end()) {
      if (cells.line_ended() && cells.skip_empty_line()) {
        ++line_;
        continue;
      }
      read_row(cells);
    }
    if (out_.numbers.empty()) {
      throw UnusableData(name_ + ": it has no row");
    }
    return std::move(out_);
  }

 private:
  // From the first line: what separates cells, and what each column is.
  void find_columns() {
    const std::string_view first = text_.substr(0, text_.find('\n'));
    constexpr std::array kDelimiters = {',', ';', '\t', '|'};
    delimiter_ = *std::ranges::max_element(
        kDelimiters, {}, [first](char delimiter) { return std::ranges::count(first, delimiter); });
    const std::vector<std::string> cells = data::cells_of_line(first, delimiter_);
    float number = 0;
    if (std::ranges::all_of(cells, [&number](const std::string& cell) {
          return data::read_number(cell, number);
        })) {
      take_columns_in_order(cells.size());
      return;
    }
    take_names(cells);
    text_ = first.size() == text_.size() ? std::string_view() : text_.substr(first.size() + 1);
    line_ = 2;
  }

  void take_columns_in_order(std::size_t count) {
    if (count != inputs_) {
      throw UnusableData(name_ + ": line 1 has " + std::to_string(count) +
                         " numbers; the model takes " + std::to_string(inputs_) +
                         ", or a first line of column names");
    }
    for (std::size_t i = 0; i < count; ++i) {
      uses_.push_back(i);
    }
  }

  void take_names(const std::vector<std::string>& names) {
    const ExampleFacts& facts = model_.config.examples;
    if (facts.columns.size() != inputs_) {  // none, or not this model's
      throw UnusableData(name_ +
                         ": line 1 holds names, but the model knows none of its columns; "
                         "it takes rows of " +
                         std::to_string(inputs_) + " numbers");
    }
    std::vector<bool> is_there(inputs_);
    for (const std::string& name : names) {
      const auto found = std::ranges::find(facts.columns, name);
      const auto index = static_cast<std::size_t>(found - facts.columns.begin());
      if (found != facts.columns.end() && is_there[index]) {
        throw UnusableData(name_ + ": two columns are called " + net::quoted(name));
      }
      if (found != facts.columns.end()) {
        is_there[index] = true;
        uses_.push_back(index);
      } else {
        uses_.push_back(name == facts.label && !facts.label.empty() ? kLabel : kLeftOut);
      }
    }
    const auto missing = std::ranges::find(is_there, false);
    if (missing != is_there.end()) {
      throw UnusableData(
          name_ + ": the column " +
          net::quoted(facts.columns[static_cast<std::size_t>(missing - is_there.begin())]) +
          " is missing, which the model was trained with");
    }
  }

  void read_row(data::CsvCells& cells) {
    const std::size_t begin = out_.numbers.size();
    out_.numbers.resize(begin + inputs_);
    std::size_t column = 0;
    do {
      const std::string_view cell = cells.next();
      if (column >= uses_.size() || cells.is_malformed()) {
        fail(column, cells.is_malformed() ? "a quote that is not closed, or something behind it"
                                          : "more cells than the first line has");
      }
      take_cell(uses_[column], cell, column, begin);
      ++column;
    } while (!cells.line_ended());
    if (column != uses_.size()) {
      fail(column,
           "the line ends, where the first one has " + std::to_string(uses_.size()) + " cells");
    }
    ++line_;
  }

  void take_cell(std::size_t use, std::string_view cell, std::size_t column, std::size_t begin) {
    float number = 0;
    if (use == kLeftOut) {
      return;
    }
    if (use == kLabel && !model_.tells_numbers()) {
      const std::optional<std::size_t> label = class_called(model_, cell);
      if (!label) {
        fail(column, net::quoted(cell) + " is no class of the model");
      }
      out_.labels.push_back(*label);
      return;
    }
    if (!data::read_number(cell, number) || !std::isfinite(number)) {
      fail(column, net::quoted(cell) + " is not a finite number");
    }
    if (use == kLabel) {
      out_.targets.push_back(number);
    } else {
      out_.numbers[begin + use] = number;
    }
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw UnusableData(name_ + ": line " + std::to_string(line_) + ", column " +
                       std::to_string(column + 1) + ": " + what);
  }

  std::string_view text_;
  const std::string& name_;
  const TrainedModel& model_;
  std::size_t inputs_;
  char delimiter_ = ',';
  std::size_t line_ = 1;
  std::vector<std::size_t> uses_;  // by column: which input, kLabel or kLeftOut
  Examples out_;
};

}  // namespace

Examples read_table(std::string_view text, const std::string& name, const TrainedModel& model) {
  return TableReader(text, name, model).read();
}

}  // namespace disttf::roles
