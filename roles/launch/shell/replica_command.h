// A command that is to run as every task of a cluster: where its words and its environment say
// which task it is.
//
//   {ps_hosts} {worker_hosts}   "host:port,host:port"
//   {job_name} {task_index}     "ps", "worker"; "0"
//   {{ }}                       literal braces
//
// Pure functions; callable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::roles {

// The words of a command that was given as one text: blanks separate, '...' and "..." hold together
// what is between them. Nothing else has a meaning: no shell reads it. Throws std::invalid_argument
// with `field`, the text and what is missing.
[[nodiscard]] std::vector<std::string> split_words(std::string_view field, std::string_view text);

// The words for one task; each stays one word. Throws std::invalid_argument with `field`, the word
// and what is allowed, when braces hold anything else than the names above.
[[nodiscard]] std::vector<std::string> fill_placeholders(std::string_view field,
                                                         const std::vector<std::string>& words,
                                                         const net::Cluster& cluster,
                                                         const net::TaskId& task);

// "NAME=value" for one task: TF_CONFIG, TFMesos' variables (TFMESOS_PS_HOSTS, _WORKER_HOSTS,
// _JOB_NAME, _TASK_INDEX, _DISTRIBUTED), and PYTHONUNBUFFERED as it sets it: a line is to come when
// it is printed, not when a buffer is full.
[[nodiscard]] std::vector<std::string> task_variables(const net::Cluster& cluster,
                                                      const net::TaskId& task);

}  // namespace disttf::roles
