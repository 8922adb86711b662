// A store of objects as a file system, so that whoever keeps checkpoints in one keeps them in the
// other, by the same operations in the same order (data/file_system.h).
//
// A file is an object: written whole or not there. A directory is what lies below its name, and is
// there as long as something does. What a store of objects lacks is the renaming of a directory,
// which is what makes a checkpoint one; so a renamed directory stays where it was written, and gets
// a name: a small object NAME.disttf-directory, which says where it lies and is put only where
// there is none yet. That is one request, which is granted to one of several who ask. Under its old
// name it is then no longer found here.
//
// docs/stores.md shows what lies in a bucket. Has no state of its own: callable from any thread, as
// the store is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "roles/store/core/object_store.h"
#include "roles/store/core/store_file_system.h"

namespace disttf::roles {

inline constexpr std::string_view kDirectoryMark = ".disttf-directory";

// The contents of such an object, and back: the name of the directory, beside which it lies.
// nullopt: somebody else has written it.
[[nodiscard]] std::string directory_text(std::string_view name);
[[nodiscard]] std::optional<std::string> directory_from(std::string_view text);

class ObjectFileSystem final : public StoreFileSystem {
 public:
  // Of all below `root`, "s3://bucket", which paths begin with.
  ObjectFileSystem(std::shared_ptr<ObjectStore> store, std::string root);

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

  [[nodiscard]] std::optional<std::vector<StoreEntry>> entries(const Path& directory) override;

 private:
  // What is at a key.
  struct Found {
    enum class Kind { kNothing, kFile, kFolder, kNamed } kind = Kind::kNothing;
    std::string folder;  // of the latter two, where its contents lie: a key
  };

  [[nodiscard]] std::string key_of(const Path& path) const;
  [[nodiscard]] std::string url_of(const std::string& key) const { return root_ + "/" + key; }
  // Where the named directory `key` lies.
  [[nodiscard]] std::optional<std::string> folder_of(const std::string& key);
  // The key with the names of directories above it followed.
  [[nodiscard]] std::string followed(std::string key);
  [[nodiscard]] Found look(const std::string& key);
  // Whether a name has been given to this folder.
  [[nodiscard]] bool is_named(const std::string& folder);
  [[nodiscard]] std::error_code rename_keys(const std::string& from, const std::string& to);

  const std::shared_ptr<ObjectStore> store_;
  const std::string root_;
};

}  // namespace disttf::roles
