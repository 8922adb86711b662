#include "main/flags/data.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "data/json/json_text.h"
#include "data/own/own_data.h"
#include "data/own/shown_text.h"
#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "run/process/stop_signal.h"
#include "text/shown_text.h"

namespace disttf {
namespace {

constexpr const char* kInspectGroup = "Data";

// The text to print, ending with a newline. Of a table: columns, classes and first rows. Of images:
// classes, and the first image in blocks. Both: what looks wrong.
std::string data_text(const data::OpenedOwnData& data);
// The same as one JSON object.
std::string data_json(const data::OpenedOwnData& data);

struct Inspection {
  roles::DataOptions data;
  bool as_json = false;
};

int inspect(const Inspection& inspection) {
  const roles::StopSignal stop;
  const data::OpenedOwnData opened = roles::open_own_dataset(inspection.data, stop);
  return Print(inspection.as_json ? data_json(opened) : data_text(opened)).run();
}

class DataCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kInspectGroup);
    app.add_option("ACTION")->description("inspect")->check(one_of({"inspect"}));
    app.add_option("PATH")->description(
        "a table (.csv, .libsvm), arrays (.npz), or a folder with train.csv and test.csv, with "
        "folders of images by class, or with IDX files");
    add_own_data_flags(app, data_.own, kInspectGroup, /*has_path=*/false);
    add.text("--data_dir", data_.data_dir, "DIR", "directory for the converted data");
    add.toggle("--json", as_json_, "print JSON");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    return run_with(Inspection{.data = data_.options(line.environment), .as_json = as_json_},
                    inspect);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    const auto fail = [](const std::string& sentence) {
      throw std::invalid_argument(sentence + " (see disttf data --help)");
    };
    if (arguments.empty()) {
      fail("data: the action is missing; inspect");
    }
    const std::string name = take_first(arguments);
    if (name != "inspect") {
      fail("data: " + net::quoted(name) + " is not inspect");
    }
    if (!begins_with_word(arguments)) {
      fail("data inspect: the path is missing; a file or a folder");
    }
    data_.own.path = take_first(arguments);
  }

  DataFlags data_;
  bool as_json_ = false;
};

}  // namespace

CommandRow data_command() {
  return {
      .name = "data",
      .description = "Inspect your own data",
      .words = "inspect PATH",
      .about =
          "Converts a table, arrays or a folder of images as training does, and describes it "
          "and what looks wrong.",
      .examples = {{"disttf data inspect iris.csv", "Columns, classes, the first rows."}},
      .files = {kInputDataFile},
      .see_also = {"launch", "download"},
      .make = make_command<DataCommand>,
  };
}

namespace {

using data::CacheIndex;
using data::Part;
using data::printable;

constexpr std::size_t kShownRows = 5;
constexpr std::size_t kShownColumns = 8;
constexpr std::size_t kListedColumns = 50;  // the text lists no more; --json lists all

const data::CachedPart& part_of(const CacheIndex& index, Part part) {
  return index.parts[static_cast<std::size_t>(part)];
}

std::size_t width_of(const CacheIndex& index) {
  std::size_t width = printable(index.label_column).size();
  for (const data::ColumnSummary& column : index.columns) {
    width = std::max(width, printable(column.name).size());
  }
  for (const std::string& name : index.classes) {
    width = std::max(width, printable(name).size());
  }
  // A longer name moves the numbers of its own line only.
  return std::min<std::size_t>(width, 40);
}

std::string columns_text(const CacheIndex& index, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", "column", width, "least",
                                 "most", "mean", "deviation");
  // A table may have thousands of columns, and the parts below must stay in sight.
  const std::size_t listed = std::min(index.columns.size(), kListedColumns);
  for (const data::ColumnSummary& column : std::span(index.columns).first(listed)) {
    text += fmt::format("{:<{}} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g}\n", printable(column.name),
                        width, column.least, column.most, column.mean, column.deviation);
  }
  return listed == index.columns.size() ? text
                                        : text + fmt::format("... and {} more, which --json has\n",
                                                             index.columns.size() - listed);
}

std::string classes_text(const CacheIndex& index, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", printable(index.label_column),
                                 width, "train", "validation", "test");
  for (std::size_t each = 0; each < index.classes.size(); ++each) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", printable(index.classes[each]), width,
                        part_of(index, Part::kTrain).rows_of_class[each],
                        part_of(index, Part::kValidation).rows_of_class[each],
                        part_of(index, Part::kTest).rows_of_class[each]);
  }
  return text;
}

std::string target_text(const data::ColumnSummary& target) {
  return fmt::format("The label {}: from {:g} to {:g}, mean {:.6g}, deviation {:.6g}\n",
                     printable(target.name), target.least, target.most, target.mean,
                     target.deviation);
}

std::string rows_text(const CacheIndex& index, const data::Split& rows) {
  std::string text;
  const std::size_t columns = index.columns.size();
  for (std::size_t row = 0; row < std::min(kShownRows, rows.rows()); ++row) {
    for (std::size_t i = 0; i < std::min(columns, kShownColumns); ++i) {
      text += fmt::format("{:g} ", rows.numbers[row * columns + i]);
    }
    text += columns > kShownColumns ? "... " : "";
    text += (index.target ? fmt::format("{:g}", rows.targets[row])
                          : printable(index.classes[rows.labels[row]])) +
            "\n";
  }
  return text;
}

std::string class_name(const data::Dataset& dataset, std::size_t label) {
  return dataset.class_names.empty() ? std::to_string(label)
                                     : std::string(dataset.class_names[label]);
}

std::uint64_t images_of(const data::Split& split, std::size_t label) {
  return static_cast<std::uint64_t>(
      // Labels are bytes, so there are at most 256 classes, and the conversion is exact.
      std::ranges::count(split.labels, static_cast<std::uint8_t>(label)));
}

// An image in block characters, two a pixel for square proportions, from the mean of the channels.
std::string blocks_of(std::span<const std::uint8_t> image, const data::ImageShape& shape) {
  constexpr std::array<const char*, 5> kBlocks = {"  ", "░░", "▒▒", "▓▓", "██"};
  // The part of a larger image that fits a terminal of 120 columns.
  constexpr std::size_t kMostRows = 64;
  constexpr std::size_t kMostColumns = 60;
  std::string text;
  for (std::size_t y = 0; y < std::min(shape.height, kMostRows); ++y) {
    for (std::size_t x = 0; x < std::min(shape.width, kMostColumns); ++x) {
      std::size_t sum = 0;
      for (std::size_t c = 0; c < shape.channels; ++c) {
        sum += image[(y * shape.width + x) * shape.channels + c];
      }
      // The mean is at most 255, so the index is at most 4: at() cannot throw.
      text += kBlocks.at(sum / shape.channels * kBlocks.size() / 256);
    }
    text += "\n";
  }
  return text;
}

std::string findings_text(const data::Dataset& dataset) {
  std::string text = dataset.findings.empty() ? "" : "\nLooks wrong:\n";
  for (const std::string& sentence : dataset.findings) {
    text += sentence + "\n";
  }
  return text;
}

std::string table_text(const data::OwnData& data, const data::Dataset& dataset) {
  const CacheIndex& index = data.index;
  std::uint64_t rows = 0;
  for (const data::CachedPart& part : index.parts) {
    rows += part.rows;
  }
  const std::size_t width = width_of(index);
  std::string text = fmt::format(
      "{}: {} rows of {} numbers, {} in column {}\n{} to train on, {} for validation, {} "
      "for the test\nconverted in {}\nSHA-256 {}\n\n",
      shown_text(index.name), rows, index.columns.size(),
      index.target ? "the label" : std::to_string(index.classes.size()) + " classes",
      printable(index.label_column), part_of(index, Part::kTrain).rows,
      part_of(index, Part::kValidation).rows, part_of(index, Part::kTest).rows,
      shown_text(data.directory.string()), index.checksum);
  text += columns_text(index, width) + "\n" +
          (index.target ? target_text(*index.target) : classes_text(index, width)) +
          "\nThe first rows to train on:\n" + rows_text(index, dataset.train);
  return text + findings_text(dataset);
}

std::string image_data_text(const data::Dataset& dataset) {
  const std::size_t rows = dataset.train.rows() + dataset.validation.rows() + dataset.test.rows();
  std::size_t width = std::string_view("class").size() + 3;
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    width = std::min<std::size_t>(std::max(width, printable(class_name(dataset, each)).size()), 40);
  }
  std::string text = fmt::format(
      "{}: {} images of {}x{}x{}, {} classes\n{} to train on, {} for validation, {} for the "
      "test\nSHA-256 {}\n\n{:<{}} {:>12} {:>12} {:>12}\n",
      dataset.name, rows, dataset.shape.height, dataset.shape.width, dataset.shape.channels,
      dataset.classes, dataset.train.rows(), dataset.validation.rows(), dataset.test.rows(),
      dataset.checksum, "class", width, "train", "validation", "test");
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", printable(class_name(dataset, each)),
                        width, images_of(dataset.train, each), images_of(dataset.validation, each),
                        images_of(dataset.test, each));
  }
  text += fmt::format("\nThe first image to train on, of class {}:\n",
                      printable(class_name(dataset, dataset.train.labels[0]))) +
          blocks_of(dataset.train.images.first(dataset.shape.size()), dataset.shape);
  return text + findings_text(dataset);
}

std::string image_data_json(const data::Dataset& dataset) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    classes.push_back({{"name", class_name(dataset, each)},
                       {"train", images_of(dataset.train, each)},
                       {"validation", images_of(dataset.validation, each)},
                       {"test", images_of(dataset.test, each)}});
  }
  const nlohmann::ordered_json out = {
      {"name", dataset.name},
      {"train", dataset.train.rows()},
      {"validation", dataset.validation.rows()},
      {"test", dataset.test.rows()},
      {"shape", {dataset.shape.height, dataset.shape.width, dataset.shape.channels}},
      {"classes", std::move(classes)},
      {"looks_wrong", dataset.findings},
      {"sha256", dataset.checksum}};
  return data::json_text(out, {.indent = 2}) + "\n";
}

std::string table_json(const data::OwnData& data, const data::Dataset& dataset) {
  const CacheIndex& index = data.index;
  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  for (const data::ColumnSummary& column : index.columns) {
    columns.push_back({{"name", column.name},
                       {"least", column.least},
                       {"most", column.most},
                       {"mean", column.mean},
                       {"deviation", column.deviation}});
  }
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (std::size_t each = 0; each < index.classes.size(); ++each) {
    classes.push_back({{"name", index.classes[each]},
                       {"train", part_of(index, Part::kTrain).rows_of_class[each]},
                       {"validation", part_of(index, Part::kValidation).rows_of_class[each]},
                       {"test", part_of(index, Part::kTest).rows_of_class[each]}});
  }
  nlohmann::ordered_json out = {{"name", index.name},
                                {"train", part_of(index, Part::kTrain).rows},
                                {"validation", part_of(index, Part::kValidation).rows},
                                {"test", part_of(index, Part::kTest).rows},
                                {"label_column", index.label_column},
                                {"columns", std::move(columns)},
                                {"classes", std::move(classes)},
                                {"looks_wrong", dataset.findings},
                                {"directory", data.directory.string()},
                                {"sha256", index.checksum}};
  if (index.target) {
    out["label"] = {{"least", index.target->least},
                    {"most", index.target->most},
                    {"mean", index.target->mean},
                    {"deviation", index.target->deviation}};
  }
  return data::json_text(out, {.indent = 2}) + "\n";
}

std::string data_text(const data::OpenedOwnData& data) {
  // Only data without images is converted, so value() cannot throw.
  return data.dataset.train.images.empty() ? table_text(data.converted.value(), data.dataset)
                                           : image_data_text(data.dataset);
}

std::string data_json(const data::OpenedOwnData& data) {
  return data.dataset.train.images.empty() ? table_json(data.converted.value(), data.dataset)
                                           : image_data_json(data.dataset);
}

}  // namespace
}  // namespace disttf
