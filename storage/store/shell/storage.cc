#include "storage/store/shell/storage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "data/output_file.h"
#include "net/wire/text.h"
#include "storage/store/core/object_file_system.h"
#include "storage/store/core/store_answers.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/gcs_store.h"
#include "storage/store/shell/hdfs_file_system.h"
#include "storage/store/shell/http_file_system.h"
#include "storage/store/shell/s3_store.h"

namespace disttf::roles {
namespace {

// The stores that the process has used, each with its connections, by "s3://bucket", "gs://bucket",
// "hdfs://namenode" or "https://host".
struct KnownStores {
  StoreEnvironment environment;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<StoreFileSystem>> by_root;
};

KnownStores& known_stores() {
  static KnownStores stores;
  return stores;
}

std::unique_ptr<StoreFileSystem> new_store(const StoreUrl& root,
                                           const StoreEnvironment& environment) {
  if (is_only_read(root)) return std::make_unique<HttpFileSystem>(environment);
  if (is_hdfs(root)) return std::make_unique<HdfsFileSystem>(root, environment);
  std::shared_ptr<ObjectStore> objects;
  if (root.scheme == "gs") {
    objects = std::make_shared<GcsStore>(root.bucket, environment);
  } else {
    objects = std::make_shared<S3Store>(root.bucket, environment);
  }
  return std::make_unique<ObjectFileSystem>(std::move(objects), to_string(root));
}

StoreFileSystem& store_of(const std::filesystem::path& path) {
  const StoreUrl url = parse_store_url("a place", path.native());
  const StoreUrl root{.scheme = url.scheme, .bucket = url.bucket, .key = {}};
  KnownStores& known = known_stores();
  // Created once per bucket and kept: a store has connections, tokens and a clock.
  const std::scoped_lock lock(known.mutex);
  std::unique_ptr<StoreFileSystem>& files = known.by_root[to_string(root)];
  if (files == nullptr) files = new_store(root, known.environment);
  return *files;
}

std::optional<std::vector<StoreEntry>> local_entries(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<StoreEntry> found;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;  // the entry may have been removed meanwhile
    StoreEntry each{.name = entry->path().filename().string(),
                    .is_directory = entry->is_directory(gone)};
    if (!each.is_directory) each.size_bytes = entry->file_size(gone);
    each.modified = entry->last_write_time(gone);
    if (!gone) found.push_back(std::move(each));
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return std::nullopt;
  }
  if (error) throw std::system_error(error, "cannot read " + directory.string());
  std::ranges::sort(found, {}, &StoreEntry::name);
  return found;
}

}  // namespace

std::string time_text(std::filesystem::file_time_type time) {
  return iso_text(std::chrono::floor<std::chrono::seconds>(std::chrono::file_clock::to_sys(time)));
}

void configure_stores(StoreEnvironment environment) {
  KnownStores& known = known_stores();
  const std::scoped_lock lock(known.mutex);
  // In place: stores keep a reference to it.
  known.environment = std::move(environment);
}

void check_place(std::string_view field, std::string_view place) {
  // At the start, so that a malformed URL is not found at the first save.
  if (is_store_url(place)) static_cast<void>(parse_store_url(field, place));
}

void check_place_to_write(std::string_view field, std::string_view place) {
  if (!is_store_url(place)) return;
  if (is_only_read(parse_store_url(field, place))) {
    net::fail(std::string(field) + ": " + net::quoted(place) +
              " is read-only, as all http and https URLs are; expected a path, or a URL like "
              "s3://bucket/prefix, gs://bucket/prefix or hdfs://namenode/path");
  }
}

data::FileSystem& Storage::on(const Path& path) {
  return is_store_url(path) ? static_cast<data::FileSystem&>(store_of(path)) : disk_;
}

std::unique_ptr<data::NewFile> Storage::create(const Path& target) {
  return on(target).create(target);
}

// A local output may be a device or a pipe, which create() would replace.
std::unique_ptr<data::NewFile> Storage::create_output(const Path& target) {
  return is_store_url(target) ? create(target) : data::create_output(target);
}

std::unique_ptr<data::OpenFile> Storage::open(const Path& path) { return on(path).open(path); }

std::uint64_t Storage::size_of(const Path& path, std::error_code& error) {
  return on(path).size_of(path, error);
}

std::filesystem::file_time_type Storage::last_write(const Path& path) {
  return on(path).last_write(path);
}

std::filesystem::file_time_type Storage::now(const Path& directory) {
  return on(directory).now(directory);
}

std::vector<std::string> Storage::names_in(const Path& directory, std::error_code& error) {
  return on(directory).names_in(directory, error);
}

bool Storage::create_directory(const Path& path, std::error_code& error) {
  return on(path).create_directory(path, error);
}

std::error_code Storage::rename(const Path& from, const Path& to) {
  // A rename between stores would be a copy and not atomic.
  if (&on(from) != &on(to)) return std::make_error_code(std::errc::cross_device_link);
  return on(from).rename(from, to);
}

std::error_code Storage::link(const Path& from, const Path& to) {
  if (&on(from) != &on(to)) return std::make_error_code(std::errc::cross_device_link);
  return on(from).link(from, to);
}

std::error_code Storage::remove(const Path& path) { return on(path).remove(path); }

void Storage::sync_directory(const Path& directory) { on(directory).sync_directory(directory); }

std::optional<std::vector<StoreEntry>> Storage::entries(const Path& directory) {
  return is_store_url(directory) ? store_of(directory).entries(directory)
                                 : local_entries(directory);
}

std::string Storage::time_of(const Path& path) {
  try {
    return time_text(last_write(path));
  } catch (const std::system_error&) {
    // A list goes on where the date of one entry cannot be read.
    return "-";
  }
}

// A store has no cheaper question than a listing.
bool Storage::is_directory(const Path& path) { return entries(path).has_value(); }

bool Storage::exists(const Path& path) {
  std::error_code error;
  static_cast<void>(size_of(path, error));
  // A bucket's folder is no object, so it has no size.
  return !error || is_directory(path);
}

}  // namespace disttf::roles
