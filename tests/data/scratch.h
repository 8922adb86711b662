// What the tests of data/ share: a directory of their own, files in it, gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace disttf::data::test {

using Bytes = std::vector<std::uint8_t>;

// A new directory, removed with all that is in it.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::vector<std::string> names() const;  // of the files in it, sorted

 private:
  std::filesystem::path path_;
};

void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
[[nodiscard]] Bytes read(const std::filesystem::path& path);
[[nodiscard]] Bytes bytes_of(std::string_view text);

// One gzip member.
[[nodiscard]] Bytes gzip(std::span<const std::uint8_t> bytes);

// What `work` throws, without the path of `folder` in front of names; "nothing" if it does not.
[[nodiscard]] std::string refusal_of(const std::function<void()>& work,
                                     const std::filesystem::path& folder);

// Runs `work` in a forked process; true if it returned true there. An exception is false.
[[nodiscard]] bool in_child(const std::function<bool()>& work);
// The same in `count` processes at once; how many of them returned true. `once_forked` runs here as
// soon as all of them are there: the place to start threads.
[[nodiscard]] int in_children(int count, const std::function<bool()>& work,
                              const std::function<void()>& once_forked = {});

}  // namespace disttf::data::test
