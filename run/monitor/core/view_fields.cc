#include "run/monitor/core/view_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/json/json_members.h"
#include "net/wire/text.h"
#include "run/monitor/core/axis.h"

namespace disttf::roles {

using OrderedJson = nlohmann::ordered_json;

std::optional<double> number_of(const OrderedJson& json) {
  if (!json.is_number()) {
    return std::nullopt;
  }
  const double value = json.get<double>();
  // Larger numbers would overflow in the arithmetic of axes.
  return std::abs(value) <= kMostShown ? std::optional(value) : std::nullopt;
}

std::optional<double> number_of(const OrderedJson& json, std::string_view name) {
  return number_of(data::member_of(json, name));
}

std::optional<double> number_at(const OrderedJson& list, std::size_t at) {
  return list.is_array() && at < list.size() ? number_of(list[at]) : std::nullopt;
}

std::optional<std::uint64_t> count_of(const OrderedJson& json, std::string_view name) {
  const OrderedJson& field = data::member_of(json, name);
  // Numbers that this program has put in may be signed; parsed ones are unsigned.
  const bool is_count =
      field.is_number_unsigned() || (field.is_number_integer() && field.get<std::int64_t>() >= 0);
  return is_count ? std::optional(field.get<std::uint64_t>()) : std::nullopt;
}

std::string text_of_field(const OrderedJson& json, std::string_view name) {
  return net::one_line(data::member_text(json, name));
}

}  // namespace disttf::roles
