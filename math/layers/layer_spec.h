// One layer in a model file: its type and its fields.
//
//   [[layer]]
//   type = "conv2d"
//   channels = 32
//   kernel = 5
//
// registry.h lists the types; each type declares its fields.
//
// Values only; callable from any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>

namespace disttf::math {

// A number or a word.
using LayerValue = std::variant<double, std::string>;

using LayerValues = std::map<std::string, LayerValue, std::less<>>;

struct LayerSpec {
  std::string type;  // "dense"
  // The prefix of its variables' names: "hid" has hid_w and hid_b. Empty: the type and its number
  // among the layers of that type, "dense2".
  std::string name;
  LayerValues fields;  // without those that have their default
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

}  // namespace disttf::math
