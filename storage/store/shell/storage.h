// The file system of a task: paths are files of this machine, URLs are files in stores. For every
// place that a user may name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_system.h"
#include "data/posix_file_system.h"
#include "storage/store/core/store_file_system.h"
#include "storage/store/shell/store_environment.h"

namespace disttf::roles {

// "2026-11-21T09:50:05Z".
[[nodiscard]] std::string time_text(std::filesystem::file_time_type time);

// To be called on the main thread before the first use of a store. Without it, stores have no
// credentials.
void configure_stores(StoreEnvironment environment);

// Throws std::invalid_argument with a sentence that names `field` if `place` is a URL of an unknown
// store. Sends no request.
void check_place(std::string_view field, std::string_view place);
// Throws also if the store is read-only.
void check_place_to_write(std::string_view field, std::string_view place);

// Has no state of its own: all objects are equivalent. The process shares each store, with its
// connections and credentials. REQUIRES: check_place() accepts the places; else, and if the
// environment has a malformed endpoint, functions throw std::invalid_argument.
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

  // Creates the output file that a user has named: in a store as create() does, on this machine as
  // data::create_output() does.
  [[nodiscard]] std::unique_ptr<data::NewFile> create_output(const Path& target);
  // The entries of a directory, in the order of names; nullopt: there is none. Throws
  // std::system_error.
  [[nodiscard]] std::optional<std::vector<StoreEntry>> entries(const Path& directory);
  // Whether a directory, or a file, of that name exists. Throws likewise.
  [[nodiscard]] bool is_directory(const Path& path);
  [[nodiscard]] bool exists(const Path& path);
  // The time of the last write, "2026-11-21T09:50:05Z"; "-": it does not exist.
  [[nodiscard]] std::string time_of(const Path& path);

 private:
  [[nodiscard]] data::FileSystem& on(const Path& path);

  data::PosixFileSystem disk_;
};

}  // namespace disttf::roles
