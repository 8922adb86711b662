#include "math/layers/layer_spec.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace disttf::math {
namespace {

std::string text_of_number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string text_of(const LayerValue& value) {
  const auto* const number = std::get_if<double>(&value);
  return number != nullptr ? text_of_number(*number) : "\"" + std::get<std::string>(value) + "\"";
}

std::string allowed_text(const LayerField& field) {
  if (field.kind == LayerField::Kind::kWord) {
    std::string text;
    for (const std::string_view word : field.words) {
      text += (text.empty() ? "\"" : ", \"") + std::string(word) + "\"";
    }
    return "one of " + text;
  }
  const std::string bounds = text_of_number(field.least) +
                             (field.kind == LayerField::Kind::kFraction ? " to below " : " to ") +
                             text_of_number(field.most);
  return (field.kind == LayerField::Kind::kWhole ? "a whole number from " : "a number from ") +
         bounds;
}

bool is_allowed(const LayerField& field, const LayerValue& value) {
  if (field.kind == LayerField::Kind::kWord) {
    const auto* const word = std::get_if<std::string>(&value);
    return word != nullptr && std::ranges::find(field.words, *word) != field.words.end();
  }
  const auto* const number = std::get_if<double>(&value);
  // The negated comparison refuses NaN, for which every comparison is false.
  if (number == nullptr || !(*number >= field.least)) {
    return false;
  }
  // The upper limit of a fraction is exclusive: a dropout rate of 1 would divide by zero.
  return field.kind == LayerField::Kind::kFraction
             ? *number < field.most
             : *number <= field.most && *number == std::floor(*number);
}

std::string names_text(std::span<const LayerField> fields) {
  std::string text;
  for (const LayerField& field : fields) {
    text += (text.empty() ? "" : ", ") + std::string(field.name);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

LayerFields::LayerFields(const LayerSpec& spec, std::span<const LayerField> fields)
    : spec_(spec), fields_(fields) {
  for (const auto& [name, value] : spec.fields) {
    const auto field = std::ranges::find(fields, name, &LayerField::name);
    if (field == fields.end()) {
      throw std::invalid_argument(name + ": " + spec.type + " has no such field; its fields are " +
                                  names_text(fields));
    }
    if (!is_allowed(*field, value)) {
      throw std::invalid_argument(name + ": " + text_of(value) + " is not " + allowed_text(*field));
    }
  }
  for (const LayerField& field : fields) {
    // A field without a default is required.
    if (field.otherwise.empty() && spec.fields.find(field.name) == spec.fields.end()) {
      throw std::invalid_argument(std::string(field.name) + ": is missing; it must be " +
                                  allowed_text(field));
    }
  }
}

double LayerFields::number(std::string_view name) const {
  if (const auto found = spec_.fields.find(name); found != spec_.fields.end()) {
    return std::get<double>(found->second);
  }
  const auto field = std::ranges::find(fields_, name, &LayerField::name);
  assert(field != fields_.end());
  // Defaults are part of the program and well-formed, so the result of the conversion is not
  // checked.
  double value = 0;
  std::from_chars(field->otherwise.data(), field->otherwise.data() + field->otherwise.size(),
                  value);
  return value;
}

std::size_t LayerFields::whole(std::string_view name) const {
  return static_cast<std::size_t>(number(name));
}

double LayerFields::fraction(std::string_view name) const { return number(name); }

std::string_view LayerFields::word(std::string_view name) const {
  if (const auto found = spec_.fields.find(name); found != spec_.fields.end()) {
    return std::get<std::string>(found->second);
  }
  const auto field = std::ranges::find(fields_, name, &LayerField::name);
  assert(field != fields_.end());
  return field->otherwise;
}

}  // namespace disttf::math
