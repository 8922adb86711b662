#include "data/own/findings.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/hold_out.h"
#include "data/own/shown_text.h"

namespace disttf::data {
namespace {

// A class with fewer training rows is too small to learn from.
constexpr std::uint64_t kFewRows = 10;
constexpr std::size_t kNamedColumns = 5;  // per sentence
// At most this many classes are named; a sentence gives the number of the others.
constexpr std::size_t kNamedClasses = 20;

std::string in_quotes(std::string_view text) { return "\"" + printable(text) + "\""; }

// Images and sparse data have many constant columns, so one sentence lists them together.
std::string same_everywhere(const std::vector<std::string>& names) {
  if (names.size() == 1) {
    return "column " + in_quotes(names.front()) +
           " has the same number in every row, so it has no effect";
  }
  std::string text = std::to_string(names.size()) +
                     " columns have the same number in every row, so they have no effect: ";
  for (std::size_t i = 0; i < std::min(names.size(), kNamedColumns); ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  }
  return names.size() > kNamedColumns ? text + ", ..." : text;
}

std::string count_text(std::uint64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// A class and its number of rows in each part; `what` is the word for a row.
struct ClassRows {
  std::string name;
  std::array<std::uint64_t, kParts> rows{};
};

void find_in_classes(const std::vector<ClassRows>& classes, const std::string& one,
                     const std::string& many, std::vector<std::string>& sentences) {
  std::size_t found = 0;
  for (const ClassRows& each : classes) {
    const std::uint64_t trained = each.rows[0];
    // Counts beyond the named ones, for the last sentence.
    if (trained >= kFewRows || ++found > kNamedClasses) continue;
    const std::uint64_t others = each.rows[1] + each.rows[2];
    sentences.push_back(trained == 0 && others > 0
                            ? "class " + in_quotes(each.name) + " has no " + one +
                                  " to train on, but " + std::to_string(each.rows[1]) +
                                  " for validation and " + std::to_string(each.rows[2]) +
                                  " for the test: every answer to them is wrong"
                            : "class " + in_quotes(each.name) + " has " +
                                  count_text(trained, one, many) + " to train on");
  }
  if (found > kNamedClasses) {
    sentences.push_back(std::to_string(found - kNamedClasses) +
                        " more classes have fewer than 10 " + many + " to train on");
  }
}

// Returns whether the classes look like measurements: many values, each of them rare.
bool look_like_measurements(const CacheIndex& index) {
  constexpr std::size_t kMany = 20;
  constexpr std::uint64_t kRowsOfAClass = 10;
  return index.classes.size() > kMany &&
         index.parts[0].rows < kRowsOfAClass * index.classes.size() &&
         std::ranges::all_of(index.classes, [](const std::string& name) {
           float ignored = 0;
           return read_number(name, ignored);
         });
}

std::uint64_t images_of(const Split& split, std::size_t label) {
  return static_cast<std::uint64_t>(
      std::ranges::count(split.labels, static_cast<std::uint8_t>(label)));
}

}  // namespace

std::vector<std::string> findings_of(const CacheIndex& index) {
  std::vector<std::string> sentences = index.warnings;
  std::vector<std::string> same;
  for (const ColumnSummary& column : index.columns) {
    if (column.least == column.most) {
      same.push_back(column.name);
      // A row number lets a model memorise the training rows and says nothing about new ones.
    } else if (column.counts_rows) {
      sentences.push_back("column " + in_quotes(column.name) +
                          " numbers the rows; --ignore_columns excludes it");
    }
  }
  if (!same.empty()) {
    sentences.push_back(same_everywhere(same));
  }
  std::vector<ClassRows> classes;
  for (std::size_t each = 0; each < index.classes.size(); ++each) {
    ClassRows& rows = classes.emplace_back();
    rows.name = index.classes[each];
    for (std::size_t part = 0; part < kParts; ++part) {
      rows.rows.at(part) = index.parts.at(part).rows_of_class[each];
    }
    // Typical of files that were joined without removing the second line of names.
    if (rows.name == index.label_column && !is_number_name(rows.name) && !index.images) {
      sentences.push_back(
          "class " + in_quotes(rows.name) +
          " has the name of the label column; the rows may contain a line of column "
          "names");
    }
  }
  // One sentence instead of one for each rare class.
  if (look_like_measurements(index)) {
    sentences.push_back("The labels are " + std::to_string(index.classes.size()) +
                        " different numbers, used as classes; --label_type number predicts the "
                        "number instead");
  } else {
    find_in_classes(classes, index.images ? "image" : "row", index.images ? "images" : "rows",
                    sentences);
  }
  if (index.target ? index.target->least == index.target->most : index.classes.size() < 2) {
    sentences.emplace_back("all labels are the same: there is nothing to learn");
  }
  return sentences;
}

std::vector<std::string> findings_of(const Dataset& dataset) {
  std::vector<std::string> sentences;
  std::vector<ClassRows> classes;
  for (std::size_t each = 0; each < dataset.classes; ++each) {
    classes.push_back({.name = dataset.class_names.empty() ? std::to_string(each)
                                                           : std::string(dataset.class_names[each]),
                       .rows = {images_of(dataset.train, each), images_of(dataset.validation, each),
                                images_of(dataset.test, each)}});
  }
  find_in_classes(classes, "image", "images", sentences);
  for (const std::string& sentence : findings_of_pixels(dataset)) sentences.push_back(sentence);
  return sentences;
}

std::vector<std::string> findings_of_pixels(const Dataset& dataset) {
  std::vector<std::string> sentences;
  const std::span<const std::uint8_t> pixels = dataset.train.images;
  // Every pixel of every image has the same value.
  if (std::ranges::all_of(pixels, [&pixels](std::uint8_t each) { return each == pixels[0]; })) {
    sentences.emplace_back("all images are the same, in one colour: there is nothing to learn");
  } else if (std::ranges::all_of(pixels, [](std::uint8_t each) { return each <= 1; })) {
    sentences.emplace_back("all bytes are 0 or 1: the images are nearly black, as 255 is white");
  }
  return sentences;
}

}  // namespace disttf::data
