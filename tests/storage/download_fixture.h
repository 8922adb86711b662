// What the tests of fetching share: two files, a temporary directory, and what was said.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/checksums.h"
#include "storage/download/download.h"
#include "tests/support/mirror_server.h"

namespace disttf::roles {

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// 200 000 bytes that are nowhere alike, so that a piece in the wrong place is noticed. They begin
// as gzip does.
inline std::string sample(unsigned seed) {
  std::string text(200'000, '\0');
  for (char& c : text) {
    seed = seed * 1664525U + 1013904223U;
    c = static_cast<char>(seed >> 24U);
  }
  text[0] = '\x1f';
  return text;
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    std::string name = testing::TempDir() + "/disttf_download_XXXXXX";
    options.directory = mkdtemp(name.data());
    options.on_message = [this](std::string_view text) { messages.emplace_back(text); };
    options.on_result = [this](std::string_view text) { results.emplace_back(text); };
    for (const auto& [target, contents] : served) {
      files.push_back({.name = target.substr(1),
                       .size_bytes = contents.size(),
                       .sha256 = data::sha256_hex(std::as_bytes(std::span(contents)))});
    }
  }
  ~DownloadTest() override { std::filesystem::remove_all(options.directory); }

  void use(const test_support::MirrorServer& server) { options.mirrors = {server.url()}; }
  void fetch() { fetch_files(files, options, interrupt); }
  // What fetching fails with; nothing when it does not.
  std::string failure() {
    try {
      fetch();
      return "";
    } catch (const DownloadError& error) {
      code = error.code();
      return error.what();
    }
  }
  std::filesystem::path path(const std::string& name) const { return options.directory / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
      result.push_back(entry.path().filename());
    }
    std::ranges::sort(result);
    return result;
  }
  void expect_all_there() const {
    for (const auto& [target, contents] : served) {
      EXPECT_EQ(contents_of(path(target.substr(1))), contents) << target;
    }
    EXPECT_THAT(names(), testing::ElementsAre(".download.lock", "a.gz", "b.gz"));
  }
  // A URL at which no process listens.
  static std::string dead_url() {
    const test_support::MirrorServer gone(test_support::serve({}));
    return gone.url();
  }

  const test_support::Files served{{"/a.gz", sample(1)}, {"/b.gz", sample(2)}};
  std::vector<RemoteFile> files;
  DownloadOptions options;
  net::Interrupt interrupt;
  std::error_code code;
  std::vector<std::string> messages;
  std::vector<std::string> results;
};

}  // namespace disttf::roles
