// Where something lies that is no file of this machine: s3://bucket/key, gs://bucket/key,
// hdfs://namenode/path, https://host/file.
//
// Such a URL goes about as a std::filesystem::path, as every other place does: "s3://bucket/run" /
// "x" is "s3://bucket/run/x". Pure functions; callable from any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

struct StoreUrl {
  std::string scheme;  // "s3", "gs", "hdfs", "webhdfs", "swebhdfs", "http" or "https"
  // Of HDFS a NameNode: "host", "host:8020" or a nameservice; of HTTP a server: "host:8080".
  std::string bucket;
  std::string key;  // without slashes at its ends; empty: the bucket itself
  friend bool operator==(const StoreUrl&, const StoreUrl&) = default;
};

// Whether `place` names a store at all: a scheme and "://", whichever it is.
[[nodiscard]] bool is_store_url(std::string_view place) noexcept;
[[nodiscard]] bool is_store_url(const std::filesystem::path& place) noexcept;

// Throws std::invalid_argument with a sentence that begins with `field` ("--train_dir") and names
// the value and what is allowed: an unknown scheme, no bucket, NameNode or server or no name of
// one, a key with "." or ".." in it. REQUIRES: is_store_url(place).
[[nodiscard]] StoreUrl parse_store_url(std::string_view field, std::string_view place);

[[nodiscard]] std::string to_string(const StoreUrl& url);

// Whether it is of a file system of Hadoop's, rather than of a store of objects.
[[nodiscard]] bool is_hdfs(const StoreUrl& url) noexcept;
// Whether it is of a server that is only read from.
[[nodiscard]] bool is_only_read(const StoreUrl& url) noexcept;

}  // namespace disttf::roles
