#include "run/setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "net/wire/text.h"
#include "text/shortest_number.h"

namespace disttf::roles {
namespace {

bool is_between(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  return value >= least && value <= most;
}

// A comparison with NaN is false, so NaN is in no range. The upper bound excludes infinity.
bool is_in(Fraction::Range range, float value) {
  switch (range) {
    case Fraction::Range::kAboveZero:
      return value > 0 && value <= std::numeric_limits<float>::max();
    case Fraction::Range::kZeroOrMore:
      return value >= 0 && value <= std::numeric_limits<float>::max();
    case Fraction::Range::kZeroToBelowOne:
      break;
  }
  return value >= 0 && value < 1;
}

std::string_view range_text(Fraction::Range range) {
  switch (range) {
    case Fraction::Range::kAboveZero:
      return "a number above 0";
    case Fraction::Range::kZeroOrMore:
      return "a number of at least 0";
    case Fraction::Range::kZeroToBelowOne:
      break;
  }
  return "a number of at least 0 and below 1";
}

// A bound that exists only for the machine's sake is mentioned only when it is exceeded.
std::string allowed_text(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (most == kMaxCount) {
    return value > most ? "a whole number from 0 to 2^53" : "at least " + std::to_string(least);
  }
  const char* const to = most == least + 1 ? " or " : " to ";
  return (most == least + 1 ? "" : "from ") + std::to_string(least) + to + std::to_string(most);
}

void check_number(std::string_view name, std::uint64_t value, std::uint64_t least,
                  std::uint64_t most) {
  if (!is_between(value, least, most)) {
    refuse_setting(name, std::to_string(value), allowed_text(value, least, most));
  }
}

// ---- Each kind of value, as text ----

struct ToText {
  const RunConfig& run;

  std::string operator()(const WholeNumber& value) const {
    return std::to_string(value.field.in(run));
  }
  std::string operator()(const OptionalNumber& value) const {
    const auto& number = value.field.in(run);
    return number ? std::to_string(*number) : std::string();
  }
  std::string operator()(const Fraction& value) const {
    return shortest_number(value.field.in(run));
  }
  std::string operator()(const Switch& value) const {
    return value.field.in(run) ? "true" : "false";
  }
  std::string operator()(const Choice& value) const { return std::string(value.name(run)); }
  std::string operator()(const Model& value) const { return math::describe(value.field.in(run)); }
  std::string operator()(const NumberList& value) const {
    return net::joined(value.field.in(run), ",",
                       [](std::size_t number) { return std::to_string(number); });
  }
  std::string operator()(const Compression& value) const {
    return compress_name(value.field.in(run));
  }
  std::string operator()(const Word& value) const { return value.field.in(run); }
};

struct FromText {
  RunConfig& run;
  std::string_view text;

  bool operator()(const WholeNumber& value) const { return set_number(value); }
  bool operator()(const OptionalNumber& value) const { return set_number(value); }
  bool operator()(const Fraction& value) const {
    float number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stopped != end || !is_in(value.range, number)) {
      return false;
    }
    value.field.in(run) = number;
    return true;
  }
  bool operator()(const Switch& value) const {
    if (text != "true" && text != "false") {
      return false;
    }
    value.field.in(run) = text == "true";
    return true;
  }
  bool operator()(const Choice& value) const { return value.set(run, text); }
  bool operator()(const Model& value) const {
    const auto kind = math::model_from_name(text);
    if (kind) {
      value.field.in(run).kind = *kind;
      // Layers and variables win over a name, so those of an earlier value must go.
      value.field.in(run).layers.clear();
      value.field.in(run).variables.clear();
    }
    return kind.has_value();
  }
  bool operator()(const NumberList& value) const {
    std::vector<std::size_t> numbers;
    // An empty text, or a comma at the end, makes an empty part, which is no number.
    for (std::size_t begin = 0, comma = 0; comma != std::string_view::npos; begin = comma + 1) {
      comma = text.find(',', begin);
      const auto number = net::whole_number(text.substr(begin, comma - begin));
      if (!number || !is_between(*number, value.least, value.most)) {
        return false;
      }
      numbers.push_back(*number);
    }
    value.field.in(run) = std::move(numbers);
    return true;
  }
  bool operator()(const Compression& value) const {
    const std::optional<float> share = compress_from_name(text);
    value.field.in(run) = share.value_or(value.field.in(run));
    return share.has_value();
  }
  bool operator()(const Word& value) const {
    value.field.in(run) = text;
    return true;
  }

 private:
  template <typename Number>
  bool set_number(const Number& value) const {
    const auto number = net::whole_number(text);
    if (!number || !is_between(*number, value.least, value.most)) {
      return false;
    }
    value.field.in(run) = *number;
    return true;
  }
};

// ---- Each kind of value, in its bounds ----

struct CheckBounds {
  const RunConfig& run;
  std::string_view name;

  void operator()(const WholeNumber& value) const {
    const std::uint64_t number = value.field.in(run);
    // 0 in the member means that the flag was left out; the flag itself cannot be 0.
    check_number(name, number, value.zero_is_unset ? 0 : value.least, value.most);
  }
  void operator()(const OptionalNumber& value) const {
    if (const auto& number = value.field.in(run)) {
      check_number(name, *number, value.least, value.most);
    }
  }
  void operator()(const Fraction& value) const {
    const float number = value.field.in(run);
    if (!is_in(value.range, number)) {
      refuse_setting(name, shortest_number(number), range_text(value.range));
    }
  }
  // The member cannot hold anything else, or math::validate() checks it.
  template <typename Other>
  void operator()(const Other& /*value*/) const {}
};

}  // namespace

bool Choice::set(RunConfig& run, std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) {
    return false;
  }
  // The names are in the order of the enumeration.
  set_(run, static_cast<std::size_t>(found - names_.begin()));
  return true;
}

std::string text_of(const Setting& setting, const RunConfig& run) {
  return std::visit(ToText{run}, setting.value);
}

bool set_from_text(const Setting& setting, std::string_view text, RunConfig& run) {
  return std::visit(FromText{run, text}, setting.value);
}

void check_bounds(const Setting& setting, const RunConfig& run) {
  std::visit(CheckBounds{run, setting.name}, setting.value);
}

void refuse_setting(std::string_view name, const std::string& value, std::string_view allowed) {
  throw std::invalid_argument("--" + std::string(name) + ": " + value + " is not " +
                              std::string(allowed));
}

}  // namespace disttf::roles
