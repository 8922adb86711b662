// Slurm's short form of host names, and of numbers of tasks.
//
//   list  = item {"," item}            n1,gpu[01-03,07],r[0-1]n[1-2]-ib
//   item  = {text | "[" range {"," range} "]"}
//   range = digits ["-" digits]        padded with zeros to the width of its first number
//
// Several groups in one item count like digits, the last one fastest. The order is kept, nothing is
// sorted or dropped: it is the order in which Slurm numbers the nodes.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

// What a list may name at most: as many as there can be tasks, so that a few bytes cannot make us
// allocate gigabytes.
inline constexpr std::size_t kMaxListedHosts = 30'000;

// `field` opens the message of std::invalid_argument: what is wrong, and what is allowed.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view field,
                                                        std::string_view text);

// "2(x3),1" -> 2, 2, 2, 1. Each is at least 1; at most kMaxListedHosts of them.
[[nodiscard]] std::vector<std::size_t> expand_task_counts(std::string_view field,
                                                          std::string_view text);

}  // namespace disttf::net
