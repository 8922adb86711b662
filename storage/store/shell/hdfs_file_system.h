// HDFS as a file system, over WebHDFS. It has directories and an atomic rename, also of a directory
// and onto a file, so checkpoints are completed as on a disk.
//
// A file is written under a temporary name, in pieces of kPartBytes, each of which can be retried.
// They are concatenated (CONCAT) before the file gets its name. An acknowledged write is as durable
// as HDFS makes it: with several DataNodes, in the memory of each.
//
// docs/stores.md shows the files. Callable from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store/core/store_file_system.h"
#include "storage/store/core/store_url.h"
#include "storage/store/core/webhdfs_answers.h"
#include "storage/store/shell/hdfs_client.h"
#include "storage/store/shell/store_environment.h"

namespace disttf::roles {

class HdfsFileSystem final : public StoreFileSystem {
 public:
  // All paths below `root`. The constructor reads `environment`. Throws as HdfsClient does.
  HdfsFileSystem(const StoreUrl& root, const StoreEnvironment& environment);

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
  // The path in HDFS: "/run/a".
  [[nodiscard]] std::string path_of(const Path& path) const;

  const std::string root_;
  const std::shared_ptr<HdfsClient> client_;
};

}  // namespace disttf::roles
