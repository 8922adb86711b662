// URLs of files in stores: s3://bucket/key, gs://bucket/key, hdfs://namenode/path,
// https://host/file.
//
// Such a URL is passed as a std::filesystem::path, like local files: "s3://bucket/run" / "x" is
// "s3://bucket/run/x". Pure functions; callable from any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

struct StoreUrl {
  std::string scheme;  // "s3", "gs", "hdfs", "webhdfs", "swebhdfs", "http" or "https"
  // For HDFS a NameNode: "host", "host:8020" or a nameservice; for HTTP a server: "host:8080".
  std::string bucket;
  std::string key;  // without slashes at both ends; empty: the bucket itself
  friend bool operator==(const StoreUrl&, const StoreUrl&) = default;
};

// Whether `place` has the form of a store's URL: any scheme and "://".
[[nodiscard]] bool is_store_url(std::string_view place) noexcept;
[[nodiscard]] bool is_store_url(const std::filesystem::path& place) noexcept;

// Throws std::invalid_argument with a sentence that begins with `field` ("--train_dir") and names
// the value and what is allowed: for an unknown scheme, a missing or malformed bucket, NameNode or
// server, or a key with "." or "..". REQUIRES: is_store_url(place).
[[nodiscard]] StoreUrl parse_store_url(std::string_view field, std::string_view place);

[[nodiscard]] std::string to_string(const StoreUrl& url);

// Whether the URL is of a Hadoop file system rather than of an object store.
[[nodiscard]] bool is_hdfs(const StoreUrl& url) noexcept;
// Whether the URL is of a read-only server.
[[nodiscard]] bool is_only_read(const StoreUrl& url) noexcept;

}  // namespace disttf::roles
