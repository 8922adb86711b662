// A command that runs as every task of a cluster: placeholders in its words, and variables, give
// its role.
//
//   {ps_hosts} {worker_hosts}   "host:port,host:port"
//   {job_name} {task_index}     "ps", "worker"; "0"
//   {{ }}                       literal braces
//
// Pure functions, except find_command(), which looks at files; callable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::roles {

// Splits a command given as one text into words: at blanks, except between '...' and "...". Nothing
// else has a meaning: no shell is involved. Throws std::invalid_argument with `field`, the text and
// what is missing.
[[nodiscard]] std::vector<std::string> split_words(std::string_view field, std::string_view text);

// The words for one task; each stays one word. Throws std::invalid_argument with `field`, the word
// and what is allowed, if braces hold anything but the names above.
[[nodiscard]] std::vector<std::string> fill_placeholders(std::string_view field,
                                                         const std::vector<std::string>& words,
                                                         const net::Cluster& cluster,
                                                         const net::TaskId& task);

struct Program {
  std::string file;  // empty: nothing runs
  std::vector<std::string> words;
};
// The words for one task, and the file that runs: the first word, searched in `search_path` (PATH)
// as a shell does. An empty `words` is no program. Throws std::invalid_argument as above, or if
// there is no such program.
[[nodiscard]] Program find_command(std::string_view field, const std::vector<std::string>& words,
                                   const net::Cluster& cluster, const net::TaskId& task,
                                   std::string_view search_path);

// "NAME=value" for one task: TF_CONFIG, TFMesos' variables (TFMESOS_PS_HOSTS, _WORKER_HOSTS,
// _JOB_NAME, _TASK_INDEX, _DISTRIBUTED), and PYTHONUNBUFFERED as TFMesos sets it: lines arrive when
// they are printed, not when a buffer is full.
[[nodiscard]] std::vector<std::string> task_variables(const net::Cluster& cluster,
                                                      const net::TaskId& task);

}  // namespace disttf::roles
