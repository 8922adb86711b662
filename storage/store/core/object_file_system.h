// An object store as a file system, so that checkpoints are kept in both by the same operations in
// the same order (data/file_system.h).
//
// A file is an object: written completely, or absent. A directory is the common prefix of keys, and
// exists while a key has it. Object stores cannot rename a directory, the operation that completes
// a checkpoint. So a renamed directory keeps its keys, and gets a name: a small object
// NAME.disttf-directory, which contains the prefix and is created only if there is none yet. That
// is one request, which succeeds for one of several writers. The old name is then hidden here.
//
// docs/stores.md shows the contents of a bucket. Has no state of its own: callable from any thread,
// as the store is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "storage/store/core/object_store.h"
#include "storage/store/core/store_file_system.h"

namespace disttf::roles {

inline constexpr std::string_view kDirectoryMark = ".disttf-directory";

// The contents of such an object, and the name that they contain: that of the directory beside it.
// nullopt: another program wrote the object.
[[nodiscard]] std::string directory_text(std::string_view name);
[[nodiscard]] std::optional<std::string> directory_from(std::string_view text);

class ObjectFileSystem final : public StoreFileSystem {
 public:
  // All paths below `root`, "s3://bucket".
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
  // The kind of thing at a key.
  struct Found {
    enum class Kind { kNothing, kFile, kFolder, kNamed } kind = Kind::kNothing;
    std::string folder;  // of kFolder and kNamed: the key of its contents
  };

  [[nodiscard]] std::string key_of(const Path& path) const;
  [[nodiscard]] std::string url_of(const std::string& key) const { return root_ + "/" + key; }
  // The key of the contents of the named directory `key`.
  [[nodiscard]] std::optional<std::string> folder_of(const std::string& key);
  // The key, with the named directories above it resolved.
  [[nodiscard]] std::string followed(std::string key);
  [[nodiscard]] Found look(const std::string& key);
  // Whether this folder has been given a name.
  [[nodiscard]] bool is_named(const std::string& folder);
  [[nodiscard]] std::error_code rename_keys(const std::string& from, const std::string& to);

  const std::shared_ptr<ObjectStore> store_;
  const std::string root_;
};

}  // namespace disttf::roles
