#include "net/transport/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "net/transport/descriptor.h"
#include "net/transport/last_error.h"

namespace disttf::net {

// What is looked at is the file that is read, not whatever has its name a moment later.
std::string read_private_file(const std::string& path, const std::string& source, std::size_t most,
                              FileSeen& seen) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    throw std::invalid_argument(source + " cannot be read: " + last_error().message());
  }
  if (!S_ISREG(status.st_mode)) throw std::invalid_argument(source + " is not a regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw std::invalid_argument(source +
                                " can be read or written by others than its owner: its mode must "
                                "be 0600 or 0400");
  }
  seen = FileSeen::of(status);
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

}  // namespace disttf::net
