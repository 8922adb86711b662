#include "storage/store/core/webhdfs_answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"
#include "storage/store/core/store_error.h"
#include "storage/store/core/xml_elements.h"

namespace disttf::roles {
namespace {

using data::member_of;
using data::member_text;
using Json = nlohmann::json;

constexpr std::size_t kMaxHdfsDepth = 16;  // the status of an erasure-coded file has five levels
constexpr std::size_t kMaxSaid = 200;      // longest message of the store to pass on, in bytes
constexpr std::int64_t kMaxHdfsTimeMs = 253402300799999;  // the end of the year 9999

Json parsed(std::string_view text) { return data::parse_json(text, kMaxHdfsDepth); }

std::optional<HdfsStatus> status_from(const Json& object) {
  const std::string type = member_text(object, "type");
  const Json& length = member_of(object, "length");
  const Json& modified = member_of(object, "modificationTime");
  if (!length.is_number_unsigned() || !modified.is_number_unsigned() ||
      (type != "FILE" && type != "DIRECTORY")) {
    return std::nullopt;
  }
  HdfsStatus status{.name = member_text(object, "pathSuffix"),
                    .is_directory = type == "DIRECTORY",
                    .size_bytes = length.get<std::uint64_t>()};
  // A later time would overflow as a time point.
  const auto time = std::min<std::uint64_t>(modified.get<std::uint64_t>(), kMaxHdfsTimeMs);
  status.modified = HdfsTime(std::chrono::milliseconds(static_cast<std::int64_t>(time)));
  // A name from the server must not lead out of the directory.
  const bool is_name =
      status.name.find('/') == std::string::npos && status.name != "." && status.name != "..";
  return is_name ? std::optional(std::move(status)) : std::nullopt;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Meaning {
  std::error_code error;
  bool may_pass = false;
};

// The meaning of the exception's class, without its package.
Meaning meaning_of_exception(int status, std::string_view exception, std::string_view message) {
  if (exception == "FileNotFoundException") return {StoreError::kNotFound};
  if (exception == "FileAlreadyExistsException") return {StoreError::kExists};
  if (exception == "ParentNotDirectoryException" || exception == "PathIsNotDirectoryException") {
    return {std::make_error_code(std::errc::not_a_directory)};
  }
  // Some errors come as a plain IOException, which only the message tells apart.
  if (exception == "PathIsNotEmptyDirectoryException" || has(message, "is not empty")) {
    return {std::make_error_code(std::errc::directory_not_empty)};
  }
  if (exception == "InvalidToken" || has(message, "InvalidToken") ||
      has(message, "token is expired")) {
    return {StoreError::kExpired};
  }
  if (exception == "AccessControlException" || exception == "AuthorizationException" ||
      exception == "SecurityException" || status == 401) {
    return {StoreError::kDenied};
  }
  if (has(exception, "QuotaExceededException")) return {StoreError::kFull};
  // No DataNode accepts the block: they are unavailable or full, which HDFS does not distinguish.
  const bool may_pass = exception == "StandbyException" || exception == "RetriableException" ||
                        exception == "SafeModeException" || has(message, "could only be written") ||
                        has(message, "could only be replicated") ||
                        has(message, "Failed to find datanode") || status == 408 || status == 429 ||
                        status >= 500;
  return {may_pass ? StoreError::kAway : StoreError::kRefused, may_pass};
}

// Reads values in the format of Hadoop's Writables.
class WritableReader {
 public:
  explicit WritableReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool is_right() const noexcept { return is_right_; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }

  // A length: one byte up to 127; else a byte with the number of following bytes, big-endian.
  std::size_t length() {
    const auto first = static_cast<signed char>(byte());
    if (first >= 0) return static_cast<std::size_t>(first);
    // The first byte is -113 to -116 for 1 to 4 bytes; below -120 the value is negative.
    const int more = -112 - first;
    if (more < 1 || more > 4) {  // negative, or larger than any file of tokens
      is_right_ = false;
      return 0;
    }
    std::size_t value = 0;
    for (int i = 0; i < more; ++i) value = (value << 8U) | static_cast<unsigned char>(byte());
    return value;
  }

  // A length and that many bytes.
  std::string_view bytes() {
    const std::size_t count = length();
    // A subtraction, since the sum could overflow.
    if (!is_right_ || count > bytes_.size() - at_) {
      is_right_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

 private:
  char byte() {
    if (at_ >= bytes_.size()) {
      is_right_ = false;
      return 0;
    }
    return bytes_[at_++];
  }

  const std::string_view bytes_;
  std::size_t at_ = 0;
  bool is_right_ = true;
};

}  // namespace

std::optional<HdfsStatus> read_hdfs_status(std::string_view text) {
  const Json answer = parsed(text);
  return status_from(member_of(answer, "FileStatus"));
}

std::optional<std::vector<HdfsStatus>> read_hdfs_listing(std::string_view text) {
  const Json answer = parsed(text);
  const Json& list = member_of(member_of(answer, "FileStatuses"), "FileStatus");
  if (!list.is_array()) return std::nullopt;
  std::vector<HdfsStatus> found;
  for (const Json& each : list) {
    auto status = status_from(each);
    // The listing of a file has one entry, without a name.
    if (!status || (status->name.empty() && list.size() > 1)) return std::nullopt;
    found.push_back(*std::move(status));
  }
  return found;
}

StoreRefusal hdfs_refusal(int status, std::string_view reason, std::string_view body) {
  const Json answer = parsed(body);
  const Json& remote = member_of(answer, "RemoteException");
  const std::string exception = member_text(remote, "exception");
  std::string message = member_text(remote, "message");
  const Meaning meaning = meaning_of_exception(status, exception, message);
  StoreRefusal refusal{.error = meaning.error,
                       .sentence = answered_text(status, reason),
                       .may_pass = meaning.may_pass};
  if (!exception.empty()) {
    refusal.sentence += ", " + net::one_line(net::cut_utf8(exception, net::kMaxShownBytes));
  }
  message.resize(std::min(message.find('\n'), message.size()));  // a stack trace follows
  if (!message.empty()) refusal.sentence += ": " + net::one_line(net::cut_utf8(message, kMaxSaid));
  return refusal;
}

std::string hadoop_property(std::string_view xml, std::string_view name) {
  std::string last_name;
  std::string last_value;
  std::string found;
  const bool is_xml = read_xml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "configuration/property/name") {
      last_name = net::trim(text);
    } else if (path == "configuration/property/value") {
      last_value = net::trim(text);
    } else if (path == "configuration/property") {
      // The last value of a name counts, as in Hadoop.
      if (last_name == name) found = last_value;
      last_name.clear();
      last_value.clear();
    }
  });
  return is_xml ? found : "";
}

std::optional<std::string> hdfs_token_from(std::string_view file) {
  constexpr std::string_view kMagic("HDTS\0", 5);  // the 0 means the format of Writables
  if (!file.starts_with(kMagic)) return std::nullopt;
  file.remove_prefix(kMagic.size());
  WritableReader reader(file);
  const std::size_t count = reader.length();
  for (std::size_t i = 0; i < count && reader.is_right(); ++i) {
    static_cast<void>(reader.bytes());  // its name in the file
    const std::size_t begin = reader.at();
    static_cast<void>(reader.bytes());  // its owner
    static_cast<void>(reader.bytes());  // the password
    const std::string_view kind = reader.bytes();
    static_cast<void>(reader.bytes());  // the service
    const bool is_of_hdfs = kind == "HDFS_DELEGATION_TOKEN" || kind == "WEBHDFS delegation" ||
                            kind == "SWEBHDFS delegation";
    // A token goes into a URL in the bytes of the file, without its name.
    if (reader.is_right() && is_of_hdfs) {
      return net::base64_for_urls(file.substr(begin, reader.at() - begin));
    }
  }
  return std::nullopt;
}

}  // namespace disttf::roles
