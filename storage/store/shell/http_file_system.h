// Files at http or https URLs, as a read-only file system: a file can be read by name, but
// directories cannot be listed.
//
// Reads in pieces if the server supports ranges, else the whole file. Follows redirects. Has no
// state except its connections: callable from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/url.h"
#include "net/waiting/interrupt.h"
#include "storage/store/core/store_file_system.h"
#include "storage/store/shell/store_environment.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {

class HttpFileSystem final : public StoreFileSystem {
 public:
  explicit HttpFileSystem(const StoreEnvironment& environment);

  [[nodiscard]] std::unique_ptr<data::NewFile> create(const Path& target) override;
  [[nodiscard]] std::unique_ptr<data::OpenFile> open(const Path& path) override;
  [[nodiscard]] std::uint64_t size_of(const Path& path, std::error_code& error) override;
  [[nodiscard]] std::filesystem::file_time_type last_write(const Path& path) override;
  [[nodiscard]] std::filesystem::file_time_type now(const Path& directory) override;
  bool create_directory(const Path& path, std::error_code& error) override;
  std::error_code rename(const Path& from, const Path& to) override;
  std::error_code link(const Path& from, const Path& to) override;
  std::error_code remove(const Path& path) override;
  void sync_directory(const Path& directory) override;
  // There are no directories: returns nullopt.
  [[nodiscard]] std::optional<std::vector<StoreEntry>> entries(const Path& directory) override;

 private:
  // Returns an answer below 300, or a 416. Throws std::system_error with a sentence that names the
  // URL.
  [[nodiscard]] net::HttpAnswer ask(const std::string& method, const std::string& url,
                                    const std::string& range);
  // Makes one try and follows redirects, setting `question` to the last URL, also for a retry.
  // Throws likewise.
  [[nodiscard]] net::HttpAnswer follow(net::HttpQuestion& question, const std::string& what);
  [[nodiscard]] std::size_t read(const std::string& url, const std::string& etag,
                                 std::uint64_t offset, std::span<std::byte> to);

  const net::Interrupt interrupt_;  // never set
  SessionPool sessions_;
};

}  // namespace disttf::roles
