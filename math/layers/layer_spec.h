// One layer in a model file: its type and its fields.
//
//   [[layer]]
//   type = "conv2d"
//   channels = 32
//   kernel = 5
//
// registry.h lists the types; each type declares its fields.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The fields of layers: each type's declaration (name, bounds, default), and one layer's values,
// validated against it.
struct LayerField {
  enum class Kind : std::uint8_t { kWhole, kFraction, kWord };
  std::string_view name;   // "units"
  std::string_view about;  // description, for the reference of model files
  Kind kind = Kind::kWhole;
  double least = 0;  // of a number; a fraction must be below `most`
  double most = 0;
  std::span<const std::string_view> words{};  // one of these
  // The value if the layer does not give one: a number as text, or a word. Empty: it is required.
  std::string_view otherwise{};
};

// The fields of one layer. Throws std::invalid_argument with one sentence that begins with the
// field: a value that is not allowed, a field that the type does not have, or a missing one.
class LayerFields {
 public:
  // Both are borrowed.
  LayerFields(const LayerSpec& spec, std::span<const LayerField> fields);

  // REQUIRES: the type has such a field, of this kind.
  [[nodiscard]] std::size_t whole(std::string_view name) const;
  [[nodiscard]] double fraction(std::string_view name) const;
  [[nodiscard]] std::string_view word(std::string_view name) const;

 private:
  [[nodiscard]] double number(std::string_view name) const;

  const LayerSpec& spec_;
  std::span<const LayerField> fields_;
};

}  // namespace disttf::math
