#include "tests/data/scratch.h"

#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace disttf::data::test {

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "disttf-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot create " + pattern);
  }
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> ScratchDirectory::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  std::copy(bytes.begin(), bytes.end(), std::ostreambuf_iterator<char>(stream));
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  std::ostringstream text;  // by blocks, because an iterator would copy byte by byte
  if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  const std::string_view bytes = text.view();
  return {bytes.begin(), bytes.end()};
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Bytes gzip(std::span<const std::uint8_t> bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate failed");
  out.resize(stream.total_out);
  return out;
}

std::string refusal_of(const std::function<void()>& work, const std::filesystem::path& folder) {
  try {
    work();
  } catch (const std::runtime_error& error) {  // includes std::system_error
    std::string sentence = error.what();
    const std::string path = folder.string() + "/";
    for (auto at = sentence.find(path); at != std::string::npos; at = sentence.find(path)) {
      sentence.erase(at, path.size());
    }
    return sentence;
  }
  return "nothing";
}

bool in_child(const std::function<bool()>& work) { return in_children(1, work) == 1; }

int in_children(int count, const std::function<bool()>& work,
                const std::function<void()>& once_forked) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool succeeded = false;
      try {
        succeeded = work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "in the child: %s\n", error.what());
      }
      // exit() would run the parent's test framework cleanup here.
      ::_exit(succeeded ? 0 : 1);
    }
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    children.push_back(child);
  }
  if (once_forked) once_forked();
  int succeeded = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      ++succeeded;
    }
  }
  return succeeded;
}

}  // namespace disttf::data::test
