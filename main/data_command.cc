#include "main/data_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "data/json/json_text.h"
#include "main/flag_values.h"
#include "main/own_data_flags.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

using data::CacheIndex;
using data::Part;

constexpr const char* kDataGroup = "Data";
constexpr std::size_t kShownRows = 5;
constexpr std::size_t kShownColumns = 8;
constexpr std::size_t kListedColumns = 50;  // with a line each
constexpr std::size_t kNamedColumns = 5;    // in one sentence
// Of a class that is trained on: fewer rows say little.
constexpr std::uint64_t kFewRows = 10;

const data::CachedPart& part_of(const CacheIndex& index, Part part) {
  return index.parts[static_cast<std::size_t>(part)];
}

std::size_t width_of(const CacheIndex& index) {
  std::size_t width = index.label_column.size();
  for (const data::ColumnSummary& column : index.columns) {
    width = std::max(width, column.name.size());
  }
  for (const std::string& name : index.classes) {
    width = std::max(width, name.size());
  }
  return std::min<std::size_t>(width, 40);
}

std::string columns_text(const CacheIndex& index, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", "column", width, "least",
                                 "most", "mean", "deviation");
  const std::size_t listed = std::min(index.columns.size(), kListedColumns);
  for (const data::ColumnSummary& column : std::span(index.columns).first(listed)) {
    text += fmt::format("{:<{}} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g}\n", column.name, width,
                        column.least, column.most, column.mean, column.deviation);
  }
  return listed == index.columns.size() ? text
                                        : text + fmt::format("... and {} more, which --json has\n",
                                                             index.columns.size() - listed);
}

std::string classes_text(const CacheIndex& index, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", index.label_column, width,
                                 "train", "validation", "test");
  for (std::size_t each = 0; each < index.classes.size(); ++each) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", index.classes[each], width,
                        part_of(index, Part::kTrain).rows_of_class[each],
                        part_of(index, Part::kValidation).rows_of_class[each],
                        part_of(index, Part::kTest).rows_of_class[each]);
  }
  return text;
}

std::string target_text(const data::ColumnSummary& target) {
  return fmt::format("The label {}: from {:g} to {:g}, mean {:.6g}, deviation {:.6g}\n",
                     target.name, target.least, target.most, target.mean, target.deviation);
}

std::string rows_text(const CacheIndex& index, const data::Split& rows) {
  std::string text;
  const std::size_t columns = index.columns.size();
  for (std::size_t row = 0; row < std::min(kShownRows, rows.rows()); ++row) {
    for (std::size_t i = 0; i < std::min(columns, kShownColumns); ++i) {
      text += fmt::format("{:g} ", rows.numbers[row * columns + i]);
    }
    text += columns > kShownColumns ? "... " : "";
    text +=
        (index.target ? fmt::format("{:g}", rows.targets[row]) : index.classes[rows.labels[row]]) +
        "\n";
  }
  return text;
}

// Many columns of images or sparse data never change: they are told in one sentence.
std::string same_everywhere(const std::vector<std::string>& names) {
  if (names.size() == 1) {
    return "column " + net::quoted(names.front()) +
           " has the same number in every row: it says nothing";
  }
  std::string text = std::to_string(names.size()) +
                     " columns have the same number in every row, and say nothing: ";
  for (std::size_t i = 0; i < std::min(names.size(), kNamedColumns); ++i) {
    text += (i == 0 ? "" : ", ") + net::quoted(names[i]);
  }
  return names.size() > kNamedColumns ? text + ", ..." : text;
}

std::string class_name(const data::Dataset& dataset, std::size_t label) {
  return dataset.class_names.empty() ? std::to_string(label)
                                     : std::string(dataset.class_names[label]);
}

std::uint64_t images_of(const data::Split& split, std::size_t label) {
  return static_cast<std::uint64_t>(
      std::ranges::count(split.labels, static_cast<std::uint8_t>(label)));
}

// Two characters a pixel, so that it is about as wide as high; the mean of its channels.
std::string blocks_of(std::span<const std::uint8_t> image, const data::ImageShape& shape) {
  constexpr std::array<const char*, 5> kBlocks = {"  ", "░░", "▒▒", "▓▓", "██"};
  constexpr std::size_t kMostRows = 64;
  constexpr std::size_t kMostColumns = 60;
  std::string text;
  for (std::size_t y = 0; y < std::min(shape.height, kMostRows); ++y) {
    for (std::size_t x = 0; x < std::min(shape.width, kMostColumns); ++x) {
      std::size_t sum = 0;
      for (std::size_t c = 0; c < shape.channels; ++c) {
        sum += image[(y * shape.width + x) * shape.channels + c];
      }
      text += kBlocks.at(sum / shape.channels * kBlocks.size() / 256);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

void add_data_command_flags(CLI::App& app, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  app.add_option("ACTION")->description("inspect")->check(one_of({"inspect"}));
  app.add_option("PATH")->description(
      "a table (.csv, .libsvm), arrays (.npz), or a folder with train.csv and test.csv, with "
      "folders of images by class, or with IDX files");
  add_own_data_flags(app, flags.own_data, kDataGroup, /*has_path=*/false);
  app.add_option("--data_dir", flags.data_dir, "folder that it is converted in")
      ->type_name("DIR")
      ->capture_default_str()
      ->group(kDataGroup);
  app.add_flag("--json", flags.json, "print JSON")->group(kDataGroup);
}

void take_data_words(std::vector<std::string>& arguments, Flags& flags) {
  const auto fail = [](const std::string& sentence) {
    throw std::invalid_argument(sentence + " (disttf data --help tells more)");
  };
  if (arguments.empty()) {
    fail("data: what to do is missing; inspect");
  }
  if (arguments.front() != "inspect") {
    fail("data: " + net::quoted(arguments.front()) + " is not inspect");
  }
  if (arguments.size() < 2 || arguments[1].empty() || arguments[1].starts_with("-")) {
    fail("data inspect: the path is missing; a file or a folder");
  }
  flags.own_data.path = arguments[1];
  arguments.erase(arguments.begin(), arguments.begin() + 2);
}

std::vector<std::string> what_looks_wrong(const CacheIndex& index) {
  std::vector<std::string> sentences;
  std::vector<std::string> same;
  for (const data::ColumnSummary& column : index.columns) {
    if (column.least == column.most) {
      same.push_back(column.name);
    } else if (column.counts_rows) {
      sentences.push_back("column " + net::quoted(column.name) +
                          " counts the rows; --ignore_columns leaves it out");
    }
  }
  if (!same.empty()) {
    sentences.push_back(same_everywhere(same));
  }
  const data::CachedPart& train = part_of(index, Part::kTrain);
  for (std::size_t each = 0; each < index.classes.size(); ++each) {
    const std::uint64_t rows = train.rows_of_class[each];
    if (rows < kFewRows) {
      sentences.push_back("class " + net::quoted(index.classes[each]) + " has " +
                          std::to_string(rows) + (rows == 1 ? " row" : " rows") + " to train on");
    }
  }
  if (index.target ? index.target->least == index.target->most : index.classes.size() < 2) {
    sentences.emplace_back("all labels are the same: there is nothing to learn");
  }
  return sentences;
}

std::vector<std::string> what_looks_wrong(const data::Dataset& dataset) {
  std::vector<std::string> sentences;
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    if (const std::uint64_t count = images_of(dataset.train, each); count < kFewRows) {
      sentences.push_back("class " + net::quoted(class_name(dataset, each)) + " has " +
                          std::to_string(count) + (count == 1 ? " image" : " images") +
                          " to train on");
    }
  }
  const std::span<const std::uint8_t> pixels = dataset.train.images;
  if (std::ranges::all_of(pixels, [&pixels](std::uint8_t each) { return each == pixels[0]; })) {
    sentences.emplace_back("all images are of one colour, and the same: there is nothing to learn");
  } else if (std::ranges::all_of(pixels, [](std::uint8_t each) { return each <= 1; })) {
    sentences.emplace_back("all bytes are 0 or 1: nearly black, where 255 is white");
  }
  return sentences;
}

std::string data_text(const data::OwnData& data, const data::Split& first) {
  const CacheIndex& index = data.index;
  std::uint64_t rows = 0;
  for (const data::CachedPart& part : index.parts) {
    rows += part.rows;
  }
  const std::size_t width = width_of(index);
  std::string text = fmt::format(
      "{}: {} rows of {} numbers, {} in column {}\n{} to train on, {} for validation, {} "
      "for the test\nconverted in {}\nSHA-256 {}\n\n",
      index.name, rows, index.columns.size(),
      index.target ? "the label" : std::to_string(index.classes.size()) + " classes",
      index.label_column, part_of(index, Part::kTrain).rows, part_of(index, Part::kValidation).rows,
      part_of(index, Part::kTest).rows, data.directory.string(), index.checksum);
  text += columns_text(index, width) + "\n" +
          (index.target ? target_text(*index.target) : classes_text(index, width)) +
          "\nThe first rows to train on:\n" + rows_text(index, first);
  const std::vector<std::string> wrong = what_looks_wrong(index);
  if (!wrong.empty()) {
    text += "\nLooks wrong:\n";
  }
  for (const std::string& sentence : wrong) {
    text += sentence + "\n";
  }
  return text;
}

std::string image_data_text(const data::Dataset& dataset) {
  const std::size_t rows = dataset.train.rows() + dataset.validation.rows() + dataset.test.rows();
  std::size_t width = std::string_view("class").size() + 3;
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    width = std::min<std::size_t>(std::max(width, class_name(dataset, each).size()), 40);
  }
  std::string text = fmt::format(
      "{}: {} images of {}x{}x{}, {} classes\n{} to train on, {} for validation, {} for the "
      "test\nSHA-256 {}\n\n{:<{}} {:>12} {:>12} {:>12}\n",
      dataset.name, rows, dataset.shape.height, dataset.shape.width, dataset.shape.channels,
      dataset.classes, dataset.train.rows(), dataset.validation.rows(), dataset.test.rows(),
      dataset.checksum, "class", width, "train", "validation", "test");
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12}\n", class_name(dataset, each), width,
                        images_of(dataset.train, each), images_of(dataset.validation, each),
                        images_of(dataset.test, each));
  }
  text += fmt::format("\nThe first image to train on, of class {}:\n",
                      class_name(dataset, dataset.train.labels[0])) +
          blocks_of(dataset.train.images.first(dataset.shape.size()), dataset.shape);
  const std::vector<std::string> wrong = what_looks_wrong(dataset);
  if (!wrong.empty()) {
    text += "\nLooks wrong:\n";
  }
  for (const std::string& sentence : wrong) {
    text += sentence + "\n";
  }
  return text;
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
      {"looks_wrong", what_looks_wrong(dataset)},
      {"sha256", dataset.checksum}};
  return data::json_text(out, {.indent = 2}) + "\n";
}

std::string data_json(const data::OwnData& data) {
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
                                {"looks_wrong", what_looks_wrong(index)},
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

}  // namespace disttf
