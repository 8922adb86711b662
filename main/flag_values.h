// Checks of the text after a flag, for CLI11 options.
//
// Their messages follow the flag's name: `--batch_size: ` + "\"abc\" is not a whole number from 1
// to 1048576". CLI11's own conversions read "-1" as 2^64-1 and "010" as 8, and report an unknown
// word as "Could not convert".
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "run/process/attempt.h"
#include "run/task.h"

namespace disttf {

// The largest values of ports and of sizes of memory.
inline constexpr std::uint64_t kMostPort = 65535;
inline constexpr std::uint64_t kMostMemoryMib = 1U << 24U;  // 16 TiB

// One day stands for "no limit"; sums of a few days still fit every type that holds a time.
inline constexpr std::uint64_t kDaySeconds = 86'400;

// Decimal digits only. For Option::transform(), which strips leading zeros.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
// A decimal number, as a 32-bit float: finite and above 0.
[[nodiscard]] CLI::Validator number_above_zero();
// As above, or 0.
[[nodiscard]] CLI::Validator number_from_zero();
// As above, at least 0 and below 1.
[[nodiscard]] CLI::Validator fraction_below_one();
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> names);
// "true" or "false" in any letter case. For Option::transform(), which makes it lower case.
[[nodiscard]] CLI::Validator boolean();
// "7,20": two whole numbers, the second at most roles::kMaxChaosRate.
[[nodiscard]] CLI::Validator seed_and_rate();
// A comma list of what roles::read_attempt() reads.
[[nodiscard]] CLI::Validator attempts();
// "none", or "topk:" and a share above 0 and below 1.
[[nodiscard]] CLI::Validator compression();
// An IP address, or "all".
[[nodiscard]] CLI::Validator ip_address_or_all();
// http:// or https:// with a host.
[[nodiscard]] CLI::Validator url();
// A comma list of values that `entry` accepts; none may be empty.
[[nodiscard]] CLI::Validator comma_list_of(CLI::Validator entry);

// Reads what attempts() accepts; an empty text has none.
[[nodiscard]] std::vector<roles::Attempt> read_attempts(const std::string& text);
// Reads what seed_and_rate() accepts.
[[nodiscard]] roles::ChaosOptions read_seed_and_rate(const std::string& text);

// The entries of all texts, each of which is a comma list: "1,2" and "3" give 1, 2, 3.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::vector<std::string>& texts);

}  // namespace disttf
