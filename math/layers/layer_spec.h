// One layer as a person writes it down: which type, and its fields.
//
//   [[layer]]
//   type = "conv2d"
//   channels = 32
//   kernel = 5
//
// Which types there are, and which fields each has, is in registry.h.
//
// Values only; callable from any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>

namespace disttf::math {

// A number, or a word.
using LayerValue = std::variant<double, std::string>;

using LayerValues = std::map<std::string, LayerValue, std::less<>>;

struct LayerSpec {
  std::string type;  // "dense"
  // What its variables are called by: "hid" has hid_w and hid_b. Empty: the type and which one of
  // that type it is, "dense2".
  std::string name;
  LayerValues fields;  // those that are not at their default
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

}  // namespace disttf::math
