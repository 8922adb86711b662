// Defines when two labels belong to the same class. All readers (CSV, libsvm, NumPy, IDX, image
// folders) and predict and serve use this one rule.
//
//  1, 1.0, +1, 1e0, "1"     one class, named 1: numeric labels are compared as numbers
//   0.50, .5, 5e-1           one class, named 0.5
//   007, 7                   two classes: a leading zero before another digit marks an identifier,
//                            such as a postal code or a folder's name
//   nan, inf, 0x10, 1_000    words: each is its own class
//   yes, Yes                 two classes: words are compared exactly
//
// Numbers of any length are compared exactly: 12345678901234567890 equals no other number.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// The limit of a label and of a column's name. Longer ones are refused.
inline constexpr std::size_t kMostNameBytes = 1024;

// Returns the name of the class of the label `text`: UTF-8 (text_encoding.h), and numbers in a
// canonical form. Two labels belong to the same class exactly if their names are equal.
// class_name_of(class_name_of(x)) == class_name_of(x).
[[nodiscard]] std::string class_name_of(std::string_view text);

// Returns whether the class name is a number; such classes are sorted by value.
[[nodiscard]] bool is_number_name(std::string_view name);

}  // namespace disttf::data
