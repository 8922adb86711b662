// The file system of a task: paths are this machine's files, URLs are what lies in a store. Where a
// user may give a place, this is what it is looked at with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_system.h"
#include "data/posix_file_system.h"
#include "roles/store/core/store_file_system.h"
#include "roles/store/shell/store_environment.h"

namespace disttf::roles {

// "2026-11-21T09:50:05Z".
[[nodiscard]] std::string time_text(std::filesystem::file_time_type time);

// Before the first use of a store, from main's thread. Without it nothing is known of stores.
void configure_stores(StoreEnvironment environment);

// Throws std::invalid_argument with a sentence that names `field` where `place` is a URL of no
// store that is known here. Asks nobody.
void check_place(std::string_view field, std::string_view place);
// The same where it is one that nothing is written to.
void check_place_to_write(std::string_view field, std::string_view place);

// Has no state of its own: each object is as good as any other. A store, with its connections and
// credentials, is shared by all of the process. REQUIRES: check_place() takes the places;
// else, and where the environment says nonsense of where a store is, std::invalid_argument comes.
class Storage final : public data::FileSystem {
 public:
  [[nodiscard]] std::unique_ptr<data::NewFile> create(const Path& target) override;
  [[nodiscard]] std::unique_ptr<data::OpenFile> open(const Path& path) override;
  [[nodiscard]] std::uint64_t size_of(const Path& path, std::error_code& error) override;
  [[nodiscard]] std::filesystem::file_time_type last_write(const Path& path) override;
  [[nodiscard]] std::filesystem::file_time_type now(const Path& directory) override;
  [[nodiscard]] std::vector<std::string> names_in(const Path& directory,
                                                  std::error_code& error) override;
  bool create_directory(const Path& path, std::error_code& error) override;
  std::error_code rename(const Path& from, const Path& to) override;
  std::error_code link(const Path& from, const Path& to) override;
  std::error_code remove(const Path& path) override;
  void sync_directory(const Path& directory) override;

  // A file that is to be the output that a user has named: in a store as create(), on this machine
  // as data::create_output().
  [[nodiscard]] std::unique_ptr<data::NewFile> create_output(const Path& target);
  // What lies in a directory, in the order of the names; nullopt: there is none. Throws
  // std::system_error.
  [[nodiscard]] std::optional<std::vector<StoreEntry>> entries(const Path& directory);
  // Whether there is a directory, or a file, of that name. The same.
  [[nodiscard]] bool is_directory(const Path& path);
  [[nodiscard]] bool exists(const Path& path);
  // When it was last written, "2026-11-21T09:50:05Z"; "-": it is not there.
  [[nodiscard]] std::string time_of(const Path& path);

 private:
  [[nodiscard]] data::FileSystem& on(const Path& path);

  data::PosixFileSystem disk_;
};

}  // namespace disttf::roles
