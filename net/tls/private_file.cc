#include "net/tls/private_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "net/waiting/descriptor.h"
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

// Texts that are erased when it goes, however that happens: a later core dump or memory disclosure
// must not contain them.
struct Erased {
  Erased() = default;
  ~Erased() {
    for (std::string& text : texts) OPENSSL_cleanse(text.data(), text.size());
  }
  Erased(const Erased&) = delete;
  Erased& operator=(const Erased&) = delete;

  std::vector<std::string> texts;
};

// Opens a file for reading. Does not wait for the writer of a pipe, and makes no terminal the
// process's own.
Descriptor open_to_read(const std::string& path) {
  int number = -1;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (number < 0 && errno == EINTR);
  return Descriptor(number);
}

// Fills `text` from the file. Returns the number of bytes; -1: errno has the reason.
ssize_t read_into(std::string& text, int file) {
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t part = ::read(file, text.data() + have, text.size() - have);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return -1;
    if (part == 0) break;
    have += static_cast<std::size_t>(part);
  }
  return static_cast<ssize_t>(have);
}

// Reads the file into `text`. Checks the opened file, because the name may refer to another one a
// moment later.
void read_private(const std::string& path, const std::string& source, std::size_t most,
                  std::string& text) {
  const Descriptor file = open_to_read(path);
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
  text.assign(most + 1, '\0');
  const ssize_t have = read_into(text, file.number());
  if (have < 0) {
    throw std::invalid_argument(source + " cannot be read: " + last_error().message());
  }
  if (static_cast<std::size_t>(have) > most) {
    throw std::invalid_argument(source + " is too long: it has more than " + std::to_string(most) +
                                " bytes");
  }
  text.resize(static_cast<std::size_t>(have));
}

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

}  // namespace

std::vector<std::string> secret_lines(std::string_view text, const std::string& source,
                                      const SecretLines& allowed) {
  // Editors on Windows put an invisible byte order mark in front.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  Erased lines;
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
    lines.texts.emplace_back(line);
  }
  const std::size_t count = lines.texts.size();
  if ((count == 0 && !allowed.may_be_none) || count > allowed.most_lines) {
    throw std::invalid_argument(source + " has " + std::to_string(count) + " " + allowed.what +
                                "s: allowed are 1 to " + std::to_string(allowed.most_lines) +
                                ", one a line");
  }
  return std::exchange(lines.texts, {});
}

std::vector<std::string> secret_lines_of_file(const std::string& path, const std::string& source,
                                              const SecretLines& allowed) {
  // Includes room for line ends.
  const std::size_t most = (allowed.most_bytes + 2) * allowed.most_lines;
  Erased file;
  std::string& text = file.texts.emplace_back();
  read_private(path, source, most, text);
  return secret_lines(text, source, allowed);
}

}  // namespace disttf::net
