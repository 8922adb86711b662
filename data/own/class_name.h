// When two labels are of one class: the one rule of all readers (CSV, libsvm, NumPy, IDX, folders
// of images) and of predict and serve.
//
//   1, 1.0, +1, 1e0, "1"     one class, called 1: labels that are numbers are compared as numbers
//   0.50, .5, 5e-1           one class, called 0.5
//   007, 7                   two classes: what begins with a zero and another digit is no number,
//                            but an identifier, as postal codes and folders have them
//   nan, inf, 0x10, 1_000    words: each is the class that is called so
//   yes, Yes                 two classes: words are compared as they are written
//
// Numbers are compared exactly, whatever their length: 12345678901234567890 is no other one.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// Of a label or of a column's name. What is longer is refused.
inline constexpr std::size_t kMostNameBytes = 1024;

// What the class is called that a label written as `text` is of: UTF-8 (text_encoding.h), and a
// number in the one way of writing it. Two labels are of one class exactly where this is equal.
// class_name_of(class_name_of(x)) == class_name_of(x).
[[nodiscard]] std::string class_name_of(std::string_view text);

// Whether a class that is called `name` is a number, so that classes are in order of their values.
[[nodiscard]] bool is_number_name(std::string_view name);

}  // namespace disttf::data
