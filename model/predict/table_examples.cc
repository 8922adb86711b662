#include "model/predict/table_examples.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "data/own/csv_cells.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/table_head.h"
#include "data/own/text_encoding.h"

namespace disttf::roles {
namespace {

using data::UnusableData;

// Uses of columns that are not inputs.
constexpr std::size_t kLeftOut = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kLabel = kLeftOut - 1;

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name, const TrainedModel& model)
      : text_(text), name_(name), model_(model), inputs_(model.config.model.input.size()) {}

  Examples read() {
    // First: the message about a wrong encoding is better than one about cells.
    check_encoding();
    find_columns();
    data::CsvCells cells(text_, delimiter_);
    // fail() counts line ends from here.
    counted_ = text_.data();
    while (!cells.at_end()) {
      if (cells.line_ended() && cells.skip_empty_line()) {
        continue;
      }
      // skip_empty_line() may have skipped the last line.
      if (cells.at_end()) break;
      read_row(cells);
    }
    if (out_.numbers.empty()) {
      throw UnusableData(name_ + ": it has no rows");
    }
    return std::move(out_);
  }

 private:
  void check_encoding() {
    text_ = data::without_byte_order_mark(text_);
    const std::string refusal = data::refused_encoding(text_.substr(0, data::kEncodingHeadBytes));
    if (refusal.starts_with(data::kNoText)) {
      throw UnusableData(name_ + ": neither a PNG, JPEG, IDX or NPY file nor a table of text");
    }
    if (!refusal.empty()) {
      throw UnusableData(name_ + ": " + refusal);
    }
  }

  // Reads the first line as training does: the separator, and what each column is.
  void find_columns() {
    const ExampleFacts& facts = model_.config.examples;
    const bool knows_names = facts.columns.size() == inputs_;  // else unknown, or of another model
    const data::TableHead head = data::read_table_head(
        text_, 1,
        {.known_names = knows_names ? facts.columns : std::vector<std::string>(),
         .may_guess = false},
        name_);
    delimiter_ = head.delimiter;
    line_ = head.rows_line;
    text_ = head.rows;
    if (head.has_names) {
      if (!knows_names) {
        throw UnusableData(name_ + ": line " + std::to_string(head.line) +
                           " contains names, but the model has no column names; must be rows of " +
                           std::to_string(inputs_) + " numbers");
      }
      take_names(head.names);
    } else if (head.names.size() == inputs_) {
      for (std::size_t i = 0; i < inputs_; ++i) uses_.push_back(i);
    } else if (knows_names && data::are_numbered(facts.columns, head.names.size()) &&
               data::are_numbered({facts.label}, head.names.size())) {
      take_names(head.names);  // the training table had no names either
    } else {
      throw UnusableData(name_ + ": line " + std::to_string(head.line) + " has " +
                         std::to_string(head.names.size()) + " cells; the model takes " +
                         std::to_string(inputs_) + " numbers, or a first line of column names");
    }
  }

  void take_names(const std::vector<std::string>& names) {
    const ExampleFacts& facts = model_.config.examples;
    std::map<std::string_view, std::size_t> inputs;
    for (std::size_t i = 0; i < facts.columns.size(); ++i) inputs.emplace(facts.columns[i], i);
    for (const std::string& name : names) {
      const auto found = inputs.find(name);
      if (found != inputs.end()) {
        // Removed below, so that the inputs that remain are the missing ones, and a second column
        // of this name is ignored.
        uses_.push_back(found->second);
        inputs.erase(found);
      } else {
        // Unknown columns are ignored: the training table may be a part of this one.
        uses_.push_back(name == facts.label && !facts.label.empty() ? kLabel : kLeftOut);
      }
    }
    if (!inputs.empty()) {
      const auto first =
          // The first one in the order of training, so the message does not depend on the map's
          // order.
          std::ranges::min_element(inputs, {}, [](const auto& each) { return each.second; });
      throw UnusableData(name_ + ": the column \"" + data::printable(first->first) +
                         "\" is missing, which the model was trained on");
    }
  }

  void read_row(data::CsvCells& cells) {
    const std::size_t begin = out_.numbers.size();
    begin_ = cells.rest().data();
    // Cells arrive in the order of the file, and are stored in that of training.
    out_.numbers.resize(begin + inputs_);
    std::size_t column = 0;
    do {
      const std::string_view cell = cells.next();
      // The bound first: take_cell() indexes uses_.
      if (column >= uses_.size() || cells.is_malformed()) {
        fail(column, cells.is_malformed() ? "an unclosed quote, or text after a closing quote"
                                          : "more cells than the first line");
      }
      take_cell(uses_[column], cell, column, begin);
      ++column;
    } while (!cells.line_ended());
    if (column != uses_.size()) {
      fail(column,
           "the line ends, where the first one has " + std::to_string(uses_.size()) + " cells");
    }
  }

  void take_cell(std::size_t use, std::string_view cell, std::size_t column, std::size_t begin) {
    float number = 0;
    if (use == kLeftOut) {
      return;
    }
    if (use == kLabel && !model_.tells_numbers()) {
      // class_called() compares with the names of all classes, so its results are kept.
      auto found = labels_.find(cell);
      if (found == labels_.end()) {
        const std::optional<std::size_t> label = class_called(model_, cell);
        if (!label) {
          fail(column, shown(cell) + " is not a class of the model");
        }
        found = labels_.emplace(cell, *label).first;
      }
      out_.labels.push_back(found->second);
      return;
    }
    if (!data::read_number(cell, number) || !std::isfinite(number)) {
      fail(column, shown(cell) + " is not a finite number");
    }
    if (use == kLabel) {
      out_.targets.push_back(number);
    } else {
      out_.numbers[begin + use] = number;
    }
  }

  static std::string shown(std::string_view cell) { return "\"" + data::printable(cell) + "\""; }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    // Counted only for a message. A quoted cell may contain line ends, so a row is not always a
    // line.
    const auto lines = std::count(counted_, begin_, '\n');
    throw UnusableData(name_ + ": line " +
                       std::to_string(line_ + static_cast<std::uint64_t>(lines)) + ", column " +
                       std::to_string(column + 1) + ": " + what);
  }

  std::string_view text_;
  const std::string& name_;
  const TrainedModel& model_;
  std::size_t inputs_;
  char delimiter_ = ',';
  std::uint64_t line_ = 1;                                  // line number of the first row
  const char* counted_ = nullptr;                           // where the first row begins
  const char* begin_ = nullptr;                             // where the current row begins
  std::map<std::string, std::size_t, std::less<>> labels_;  // class by the text of its label
  std::vector<std::size_t> uses_;  // by column: index of the input, kLabel or kLeftOut
  Examples out_;
};

}  // namespace

Examples read_table(std::string_view text, const std::string& name, const TrainedModel& model) {
  return TableReader(text, name, model).read();
}

}  // namespace disttf::roles
