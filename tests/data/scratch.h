// Helpers for the tests of data/: a temporary directory, files in it, gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace disttf::data::test {

using Bytes = std::vector<std::uint8_t>;

// A new directory; the destructor removes it with its contents.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::vector<std::string> names() const;  // of its files, sorted

 private:
  std::filesystem::path path_;
};

void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
[[nodiscard]] Bytes read(const std::filesystem::path& path);
[[nodiscard]] Bytes bytes_of(std::string_view text);

// Returns the bytes as one gzip member.
[[nodiscard]] Bytes gzip(std::span<const std::uint8_t> bytes);

// Returns the message that `work` throws, without the path of `folder` before names; "nothing" if
// it does not throw.
[[nodiscard]] std::string refusal_of(const std::function<void()>& work,
                                     const std::filesystem::path& folder);

// Runs `work` in a forked process; returns whether it returned true there. An exception counts as
// false.
[[nodiscard]] bool in_child(const std::function<bool()>& work);
// Runs `work` in `count` processes at once; returns how many returned true. `once_forked` runs in
// this process after all forks: a safe time to start threads.
[[nodiscard]] int in_children(int count, const std::function<bool()>& work,
                              const std::function<void()>& once_forked = {});

}  // namespace disttf::data::test
