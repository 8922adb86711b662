// What the text behind a flag may be: checks for CLI11 options.
//
// Their sentences follow the flag's name, `--batch_size: ` + "\"abc\" is not a whole number from 1
// to 1048576". CLI11's own conversions take "-1" for 2^64-1, "010" for 8, and an unknown word for a
// reason to say "Could not convert".
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "roles/process/attempt.h"
#include "roles/run/chaos_options.h"

namespace disttf {

// The largest values that flags of their kind take.
inline constexpr std::uint64_t kMostPort = 65535;
inline constexpr std::uint64_t kMostMemoryMib = 1U << 24U;  // 16 TiB

// Decimal digits alone. For use with Option::transform(): leading zeros are taken off.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
// A decimal number, as a 32-bit float: finite and above 0.
[[nodiscard]] CLI::Validator number_above_zero();
// As above, or 0.
[[nodiscard]] CLI::Validator number_from_zero();
// As above, at least 0 and below 1.
[[nodiscard]] CLI::Validator fraction_below_one();
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> names);
// "true" or "false" in any letter case. For use with Option::transform(): lower case.
[[nodiscard]] CLI::Validator boolean();
// "7,20": two whole numbers, the second one at most roles::kMaxChaosRate.
[[nodiscard]] CLI::Validator seed_and_rate();
// roles::read_attempt(), at commas.
[[nodiscard]] CLI::Validator attempts();
// "none", or "topk:" and a share above 0 and below 1.
[[nodiscard]] CLI::Validator compression();
// An IP address, or "all".
[[nodiscard]] CLI::Validator ip_address_or_all();
// http:// or https:// with a host.
[[nodiscard]] CLI::Validator url();
// Entries between commas, each of which `entry` accepts; none may be empty.
[[nodiscard]] CLI::Validator comma_list_of(CLI::Validator entry);

// What attempts() has accepted; none of an empty text.
[[nodiscard]] std::vector<roles::Attempt> read_attempts(const std::string& text);
// What seed_and_rate() has accepted.
[[nodiscard]] roles::ChaosOptions read_seed_and_rate(const std::string& text);

// The entries of the texts, each a comma list: "1,2" and "3" are 1, 2, 3.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::vector<std::string>& texts);

}  // namespace disttf
