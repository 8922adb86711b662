// Parses answers of HDFS over WebHDFS, which are untrusted: files, errors; and Hadoop's files of
// settings and tokens.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/store/core/store_answers.h"

namespace disttf::roles {

using HdfsTime = std::chrono::sys_time<std::chrono::milliseconds>;

struct HdfsStatus {
  std::string name;  // within the listed directory; empty: the requested file itself
  bool is_directory = false;
  std::uint64_t size_bytes = 0;  // of a file
  HdfsTime modified{};
};

// Parse answers to GETFILESTATUS and LISTSTATUS. nullopt: malformed. Reject names that are not a
// single path segment.
[[nodiscard]] std::optional<HdfsStatus> read_hdfs_status(std::string_view json);
[[nodiscard]] std::optional<std::vector<HdfsStatus>> read_hdfs_listing(std::string_view json);

// The meaning of an error status: a StoreError, or the system's error if HDFS reports what a disk
// would report.
[[nodiscard]] StoreRefusal hdfs_refusal(int status, std::string_view reason, std::string_view body);

// The value of a property in a file like hdfs-site.xml; empty: none.
[[nodiscard]] std::string hadoop_property(std::string_view xml, std::string_view name);

// An HDFS delegation token for WebHDFS, from the file that HADOOP_TOKEN_FILE_LOCATION names.
// nullopt: the file has none, or is malformed.
[[nodiscard]] std::optional<std::string> hdfs_token_from(std::string_view file);

}  // namespace disttf::roles
