#include "data/own/classes.h"

#include <algorithm>
#include <numeric>

#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/text_encoding.h"
#include "text/shown_text.h"

namespace disttf::data {

std::vector<std::uint8_t> Classes::places_of(const std::vector<std::string>& words,
                                             const std::filesystem::path& path,
                                             const std::string& column) {
  std::vector<std::uint8_t> places;
  for (const std::string& word : words) {
    // Different spellings of a number are one class.
    const auto [found, is_new] = places_.try_emplace(class_name_of(word), names_.size());
    if (is_new) {
      names_.push_back(found->first);
      note_encoding(word, found->first, path);
    }
    if (names_.size() > kMostClasses) {
      throw UnusableData(path.string() + ": column \"" + printable(column) +
                         "\" has more than 256 values, the limit for classes. "
                         "--label_column selects another column; --label_type number predicts "
                         "numbers");
    }
    places.push_back(static_cast<std::uint8_t>(found->second));
  }
  return places;
}

std::vector<std::string> Classes::in_order(std::vector<std::uint8_t>& final_places) const {
  std::vector<std::size_t> order(names_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<float> numbers(names_.size());
  bool are_numbers = true;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    are_numbers = are_numbers && read_number(names_[i], numbers[i]);
  }
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    // Two names can be equal as floats, such as 16777216 and 16777217; their text then decides, so
    // the order is total.
    return are_numbers && numbers[a] != numbers[b] ? numbers[a] < numbers[b]
                                                   : names_[a] < names_[b];
  });
  std::vector<std::string> sorted;
  final_places.assign(kMostClasses, 0);
  for (const std::size_t place : order) {
    final_places[place] = static_cast<std::uint8_t>(sorted.size());
    sorted.push_back(names_[place]);
  }
  return sorted;
}

void Classes::note_encoding(const std::string& word, const std::string& name,
                            const std::filesystem::path& path) {
  // One warning is enough: it says how all such labels are read.
  if (!warnings_.empty() || is_utf8(word)) return;
  warnings_.push_back(shown_text(path.string()) + ": the label \"" + printable(word) +
                      "\" is not UTF-8; such labels are read as Windows-1252, this one as \"" +
                      printable(name) + "\"");
}

}  // namespace disttf::data
