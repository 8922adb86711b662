// Slurm's short forms of host names and of task counts.
//
//   list  = item {"," item}            n1,gpu[01-03,07],r[0-1]n[1-2]-ib
//   item  = {text | "[" range {"," range} "]"}
//   range = digits ["-" digits]        padded with zeros to the width of its first number
//
// Several groups in one item count like digits, the last one fastest. The order is kept, nothing is
// sorted or removed: Slurm numbers the nodes in this order.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

// The most hosts in a list, which is the most tasks there can be. The limit prevents a few bytes
// from allocating gigabytes.
inline constexpr std::size_t kMaxListedHosts = 30'000;

// `field` begins the message of std::invalid_argument: what is wrong, and what is allowed.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view field,
                                                        std::string_view text);

// "2(x3),1" -> 2, 2, 2, 1. Each is at least 1; at most kMaxListedHosts of them.
[[nodiscard]] std::vector<std::size_t> expand_task_counts(std::string_view field,
                                                          std::string_view text);

}  // namespace disttf::net
