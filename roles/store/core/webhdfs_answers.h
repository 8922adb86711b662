// What HDFS says over WebHDFS, out of bytes that we do not trust: what lies there, refusals, what
// its files of configuration and tokens hold.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roles/store/core/store_answers.h"

namespace disttf::roles {

using HdfsTime = std::chrono::sys_time<std::chrono::milliseconds>;

struct HdfsStatus {
  std::string name;  // in the directory that was listed; empty: of what was asked for itself
  bool is_directory = false;
  std::uint64_t size_bytes = 0;  // of a file
  HdfsTime modified{};
};

// Of GETFILESTATUS and LISTSTATUS. nullopt: it is no such answer; a name that is none of one file
// is not let in.
[[nodiscard]] std::optional<HdfsStatus> read_hdfs_status(std::string_view json);
[[nodiscard]] std::optional<std::vector<HdfsStatus>> read_hdfs_listing(std::string_view json);

// What a status that is no success means: a StoreError, or the system's where HDFS says what a disk
// would say.
[[nodiscard]] StoreRefusal hdfs_refusal(int status, std::string_view reason, std::string_view body);

// A property of a file like hdfs-site.xml; empty: it has none.
[[nodiscard]] std::string hadoop_property(std::string_view xml, std::string_view name);

// A delegation token of HDFS as WebHDFS takes it, out of the file that HADOOP_TOKEN_FILE_LOCATION
// names. nullopt: there is none in it, or it is no such file.
[[nodiscard]] std::optional<std::string> hdfs_token_from(std::string_view file);

}  // namespace disttf::roles
