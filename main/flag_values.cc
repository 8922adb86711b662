#include "main/flag_values.h"

#include <algorithm>
#include <asio/ip/address.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "net/http/url.h"
#include "net/wire/text.h"
#include "run/run_config.h"

namespace disttf {
namespace {

std::string range_text(std::uint64_t least, std::uint64_t most) {
  return "from " + std::to_string(least) + " to " + std::to_string(most);
}

// The value of a finite float in decimal notation; nullopt: `text` is something else.
std::optional<float> read_float(const std::string& text) {
  float value = 0;
  const char* const end = text.data() + text.size();
  // Independent of the locale, unlike strtof().
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  // The help omits kMaxCount, a bound that only prevents overflow.
  const bool is_bounded = most < roles::kMaxCount;
  const auto check = [least, most, is_bounded](std::string& text) -> std::string {
    // Digits are checked first: from_chars() accepts a text that only begins with a number.
    const bool is_number = !text.empty() && std::ranges::all_of(text, net::is_digit);
    if (!is_number) {
      return net::quoted(text) + " is not a whole number " +
             (is_bounded ? range_text(least, most) : "of at least " + std::to_string(least));
    }
    std::uint64_t value = 0;
    const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
    if (error == std::errc() && value < least && !is_bounded) {
      return text + " is not at least " + std::to_string(least);
    }
    // A number beyond 64 bits sets an error, and is out of any range.
    if (error != std::errc() || value < least || value > most) {
      return text + " is not " + range_text(least, most);
    }
    // Normalizes 007, so that equal values compare equal.
    text = std::to_string(value);
    return {};
  };
  return {check, is_bounded ? std::to_string(least) + ".." + std::to_string(most) : std::string()};
}

CLI::Validator number_above_zero() {
  return {[](std::string& text) -> std::string {
            const auto value = read_float(text);
            return value && *value > 0 ? std::string()
                                       : net::quoted(text) + " is not a number above 0";
          },
          ""};
}

CLI::Validator number_from_zero() {
  return {[](std::string& text) -> std::string {
            const auto value = read_float(text);
            return value && *value >= 0 ? std::string()
                                        : net::quoted(text) + " is not a number of at least 0";
          },
          ""};
}

CLI::Validator fraction_below_one() {
  return {[](std::string& text) -> std::string {
            const auto value = read_float(text);
            return value && *value >= 0 && *value < 1
                       ? std::string()
                       : net::quoted(text) + " is not a number of at least 0 and below 1";
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> names) {
  std::string sentence;
  std::string set;  // for the help
  for (std::size_t each = 0; each < names.size(); ++each) {
    const char* const separator = each == 0 ? "" : each + 1 == names.size() ? " or " : ", ";
    sentence += separator + names[each];
    set += (each == 0 ? "" : ",") + names[each];
  }
  return {[names = std::move(names), sentence](std::string& text) -> std::string {
            return std::find(names.begin(), names.end(), text) != names.end()
                       ? std::string()
                       : net::quoted(text) + " is not " + sentence;
          },
          "{" + set + "}"};
}

CLI::Validator boolean() {
  return {[](std::string& text) -> std::string {
            // Scripts in Python pass True and False.
            std::string lower = net::to_lower(text);
            if (lower != "true" && lower != "false") {
              return net::quoted(text) + " is not true or false";
            }
            text = std::move(lower);
            return {};
          },
          ""};
}

CLI::Validator attempts() {
  return {[](std::string& text) -> std::string {
            try {
              // The check is the parser itself, so that the two cannot disagree.
              static_cast<void>(read_attempts(text));
            } catch (const std::invalid_argument& error) {
              return error.what();
            }
            return {};
          },
          ""};
}

std::vector<roles::Attempt> read_attempts(const std::string& text) {
  std::vector<roles::Attempt> attempts;
  if (text.empty()) return attempts;
  for (const std::string& each : split_at_commas({text})) {
    attempts.push_back(roles::read_attempt(each));
  }
  return attempts;
}

CLI::Validator seed_and_rate() {
  return {[](std::string& text) -> std::string {
            std::vector<std::string> parts = split_at_commas({text});
            if (parts.size() != 2 || !whole_number(0, roles::kMaxCount)(parts[0]).empty() ||
                !whole_number(0, roles::kMaxChaosRate)(parts[1]).empty()) {
              return net::quoted(text) + " is not SEED,RATE: two whole numbers, RATE " +
                     range_text(0, roles::kMaxChaosRate);
            }
            return {};
          },
          ""};
}

roles::ChaosOptions read_seed_and_rate(const std::string& text) {
  const std::vector<std::string> parts = split_at_commas({text});
  // seed_and_rate() has accepted the text, so neither conversion throws.
  return {.seed = std::stoull(parts.at(0)),
          .per_1000 = static_cast<std::uint32_t>(std::stoul(parts.at(1)))};
}

CLI::Validator compression() {
  return {[](std::string& text) -> std::string {
            return roles::compress_from_name(text)
                       ? std::string()
                       : net::quoted(text) +
                             " is not none or topk:SHARE with a share above 0 and below 1";
          },
          ""};
}

CLI::Validator ip_address_or_all() {
  return {[](std::string& text) -> std::string {
            std::error_code error;
            asio::ip::make_address(text, error);
            return !error || text == "all"
                       ? std::string()
                       : net::quoted(text) + " is not an IP address of this machine, nor all";
          },
          ""};
}

CLI::Validator url() {
  return {[](std::string& text) -> std::string {
            std::string why;
            return net::read_url(text, why) ? std::string() : net::quoted(text) + " " + why;
          },
          ""};
}

CLI::Validator comma_list_of(CLI::Validator entry) {
  return {[entry = std::move(entry)](std::string& text) -> std::string {
            for (std::string& each : split_at_commas({text})) {
              if (each.empty()) {
                return net::quoted(text) +
                       " has an empty entry; entries are separated by one comma";
              }
              if (std::string why = entry(each); !why.empty()) {
                return why;
              }
            }
            return {};
          },
          ""};
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& texts) {
  std::vector<std::string> entries;
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    // An empty text has one empty entry, which comma_list_of() rejects.
    for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
      comma = text.find(',', begin);
      entries.push_back(text.substr(begin, comma - begin));
    }
  }
  return entries;
}

}  // namespace disttf
