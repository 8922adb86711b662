#include "net/transport/private_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "net/transport/descriptor.h"
#include "net/transport/last_error.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

std::vector<gid_t> groups_of_this_process() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  // Fails if the list has grown since the first call. Then only the effective group counts.
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  groups.push_back(::getegid());
  return groups;
}

// Whether no user but the owner may open the file, or only a group of this process may. The latter
// requires exactly mode 0440, which Kubernetes gives to the files of a Secret in a pod with an
// fsGroup. The groups are read once, because the sandbox may refuse the call when a file is read
// again later.
bool is_private(const struct stat& status) {
  static const std::vector<gid_t> kOwnGroups = groups_of_this_process();
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if ((status.st_mode & kOthers) == 0) return true;
  return (status.st_mode & ACCESSPERMS) == (S_IRUSR | S_IRGRP) &&
         std::ranges::find(kOwnGroups, status.st_gid) != kOwnGroups.end();
}

// Checks the opened file, because the name may refer to another one a moment later.
std::string read_private(const std::string& path, const std::string& source, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    throw std::invalid_argument(source + " cannot be read: " + last_error().message());
  }
  if (!S_ISREG(status.st_mode)) throw std::invalid_argument(source + " is not a regular file");
  if (!is_private(status)) {
    throw std::invalid_argument(
        source +
        " can be read or written by others than its owner: its mode must be 0600 or 0400, or 0440 "
        "with a group of this process");
  }
  // One byte more than is allowed shows that a file is too long. Its reported size is not relied
  // on, because the file may grow.
  std::string text(most + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t part = ::read(file.number(), text.data() + have, text.size() - have);
    if (part < 0) {
      throw std::invalid_argument(source + " cannot be read: " + last_error().message());
    }
    if (part == 0) break;
    have += static_cast<std::size_t>(part);
  }
  if (have > most) {
    throw std::invalid_argument(source + " is too long: it has more than " + std::to_string(most) +
                                " bytes");
  }
  text.resize(have);
  return text;
}

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

}  // namespace

std::vector<std::string> secret_lines(std::string_view text, const std::string& source,
                                      const SecretLines& allowed) {
  // Editors on Windows put an invisible byte order mark in front.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  std::vector<std::string> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const bool is_good = !allowed.must_be_visible || std::ranges::all_of(line, is_visible);
    // Messages name the line's number and length and never its text, which is a secret.
    if (!is_good) {
      throw std::invalid_argument(source + " has in line " + std::to_string(number) + " a " +
                                  allowed.what +
                                  " with a character that is not visible, or not ASCII");
    }
    if (line.size() < allowed.least_bytes || line.size() > allowed.most_bytes) {
      throw std::invalid_argument(
          source + " has a " + allowed.what + " of " + std::to_string(line.size()) +
          " bytes: allowed are " + std::to_string(allowed.least_bytes) + " to " +
          std::to_string(allowed.most_bytes) +
          (allowed.must_be_visible ? " visible characters of ASCII, random ones in a line"
                                   : " random ones in a line"));
    }
    lines.emplace_back(line);
  }
  if ((lines.empty() && !allowed.may_be_none) || lines.size() > allowed.most_lines) {
    throw std::invalid_argument(source + " has " + std::to_string(lines.size()) + " " +
                                allowed.what + "s: allowed are 1 to " +
                                std::to_string(allowed.most_lines) + ", one a line");
  }
  return lines;
}

std::vector<std::string> secret_lines_of_file(const std::string& path, const std::string& source,
                                              const SecretLines& allowed) {
  // Includes room for line ends.
  std::string text = read_private(path, source, (allowed.most_bytes + 2) * allowed.most_lines);
  std::vector<std::string> lines = secret_lines(text, source, allowed);
  OPENSSL_cleanse(text.data(), text.size());
  return lines;
}

}  // namespace disttf::net
