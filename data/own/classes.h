// Collects the classes that occur in the labels of a set of files.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace disttf::data {

inline constexpr std::size_t kMostClasses = 256;  // a label is one byte

class Classes {
 public:
  // Returns the class index of each word of a block (RowBlock::words, class_name.h). Throws
  // UnusableData if there are more than kMostClasses; `path` and `column` are for that sentence.
  [[nodiscard]] std::vector<std::uint8_t> places_of(const std::vector<std::string>& words,
                                                    const std::filesystem::path& path,
                                                    const std::string& column);
  // The classes in the order of first occurrence.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  // Returns the names sorted by value if all are numbers, otherwise as words. final_places[i] is
  // the position of names()[i] in that order.
  [[nodiscard]] std::vector<std::string> in_order(std::vector<std::uint8_t>& final_places) const;
  // Sentences about labels that are not UTF-8: at most one.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  void note_encoding(const std::string& word, const std::string& name,
                     const std::filesystem::path& path);

  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<std::string> warnings_;
};

}  // namespace disttf::data
