#include "storage/store/core/store_url.h"

#include <algorithm>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kSchemeEnd = "://";
// S3's limit, in bytes of UTF-8.
constexpr std::size_t kMaxKeyBytes = 1024;

// S3's rule for new buckets; older names with capitals or underscores cannot be part of a host
// name.
bool is_bucket_name(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || net::is_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

// A host or a nameservice, with an optional port. Hadoop does not support IPv6 addresses.
bool is_server_name(std::string_view name) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  const std::string_view host = name.substr(0, colon);
  const bool is_host = !host.empty() && std::ranges::all_of(host, [](char c) {
    return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '.' || c == '_';
  });
  if (!is_host || colon == name.size()) return is_host;
  const std::string_view port = name.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && port.front() != '0' &&
         std::ranges::all_of(port, net::is_digit);
}

// Whether no client on the way would normalize a segment of the key.
bool is_normal_key(std::string_view key) {
  if (key.empty()) return true;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    if (segment.empty() || segment == "." || segment == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool is_store_url(std::string_view place) noexcept {
  const std::size_t end = place.find(kSchemeEnd);
  if (end == std::string_view::npos || end == 0 || !net::is_letter(place.front())) return false;
  return std::ranges::all_of(place.substr(0, end), [](char c) {
    return net::is_letter(c) || net::is_digit(c) || c == '+' || c == '-' || c == '.';
  });
}

bool is_store_url(const std::filesystem::path& place) noexcept {
  return is_store_url(std::string_view(place.native()));
}

StoreUrl parse_store_url(std::string_view field, std::string_view place) {
  const auto refuse = [&](const std::string& why) {
    net::fail(std::string(field) + ": " + net::quoted(place) + " " + why +
              "; expected a path, or a URL like s3://bucket/prefix, gs://bucket/prefix or "
              "hdfs://namenode/path");
  };
  const std::size_t scheme_end = place.find(kSchemeEnd);
  StoreUrl url{.scheme = net::to_lower(place.substr(0, scheme_end)), .bucket = {}, .key = {}};
  const bool is_of_buckets = url.scheme == "s3" || url.scheme == "gs";
  if (!is_of_buckets && !is_hdfs(url) && !is_only_read(url)) {
    refuse("has the unknown scheme " + net::quoted(url.scheme));
  }
  std::string_view rest = place.substr(scheme_end + kSchemeEnd.size());
  url.bucket = rest.substr(0, rest.find('/'));
  const char* const what = is_of_buckets ? "bucket" : (is_only_read(url) ? "server" : "NameNode");
  if (url.bucket.empty()) refuse(std::string("names no ") + what);
  if (!is_of_buckets && !is_server_name(url.bucket)) {
    refuse(std::string("names the ") + what + " " + net::quoted(url.bucket) +
           ", which is not HOST or HOST:PORT");
  }
  if (is_of_buckets && !is_bucket_name(url.bucket)) {
    refuse("names the bucket " + net::quoted(url.bucket) +
           ", which is not a name of 3 to 63 lower-case letters, digits, dots and hyphens");
  }
  rest.remove_prefix(url.bucket.size());
  while (rest.starts_with('/')) rest.remove_prefix(1);
  // "s3://bucket/a/" names the same folder as "s3://bucket/a".
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (!is_normal_key(rest)) refuse("has an empty segment, \".\" or \"..\" in it");
  if (rest.size() > kMaxKeyBytes) {
    refuse("is longer than the " + std::to_string(kMaxKeyBytes) + " bytes that a key may have");
  }
  if (is_hdfs(url) && rest.find(':') != std::string_view::npos) {
    refuse("has a colon in its path, which HDFS does not allow");
  }
  // A name is appended to the path of a folder, which a query would follow.
  if (is_only_read(url) && rest.find_first_of("?#") != std::string_view::npos) {
    refuse("has a query or a fragment, which are not allowed");
  }
  url.key = rest;
  return url;
}

std::string to_string(const StoreUrl& url) {
  std::string text = url.scheme + std::string(kSchemeEnd) + url.bucket;
  return url.key.empty() ? text : text + "/" + url.key;
}

bool is_only_read(const StoreUrl& url) noexcept {
  return url.scheme == "http" || url.scheme == "https";
}

bool is_hdfs(const StoreUrl& url) noexcept {
  return url.scheme == "hdfs" || url.scheme == "webhdfs" || url.scheme == "swebhdfs";
}

}  // namespace disttf::roles
