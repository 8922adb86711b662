#include "storage/store/core/object_file_system.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "data/checksums.h"
#include "storage/store/core/store_error.h"
#include "storage/store/core/store_file_system.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kDirectoryHead = "disttf directory 1\n";
// Such objects are small; a larger one was written by another program.
constexpr std::size_t kMaxDirectoryText = 4096;
// Limit of a chain of named directories; chains of more than two do not occur.
constexpr int kMaxFollowed = 8;

// Whether the name may be that of a local file. A key can contain anything, such as ".." or a
// slash, and a copied folder must not write outside of its target.
bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

std::string_view parent_key(std::string_view key) {
  const std::size_t slash = key.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : key.substr(0, slash);
}

std::string_view name_in(std::string_view key) { return key.substr(key.rfind('/') + 1); }

std::string beside_key(std::string_view key, std::string_view name) {
  const std::string_view parent = parent_key(key);
  return parent.empty() ? std::string(name) : std::string(parent) + "/" + std::string(name);
}

std::filesystem::file_time_type file_time(std::chrono::sys_seconds time) {
  return std::chrono::file_clock::from_sys(time);
}

class NewObject final : public data::NewFile {
 public:
  NewObject(std::shared_ptr<ObjectStore> store, std::string key)
      : store_(std::move(store)), key_(std::move(key)) {}

  void write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      // Sends a part only when the next byte comes: a file of one part is put in one request.
      if (kept_.size() == kPartBytes) send();
      const auto taken = bytes.first(std::min(bytes.size(), kPartBytes - kept_.size()));
      const auto as_bytes = std::as_bytes(taken);
      kept_.insert(kept_.end(), as_bytes.begin(), as_bytes.end());
      bytes = bytes.subspan(taken.size());
    }
  }

  // Does nothing: an unfinished object does not exist, and a finished one is durable.
  void sync() override {}

  void take_name() override {
    // The object appears with this request, complete or not at all.
    if (upload_ == nullptr) {
      store_->put(key_, kept_);
    } else {
      upload_->add(kept_);
      upload_->complete();
    }
  }

 private:
  void send() {
    // The first full part starts the upload, so a small file never does.
    if (upload_ == nullptr) upload_ = store_->upload(key_);
    upload_->add(kept_);
    kept_.clear();
  }

  const std::shared_ptr<ObjectStore> store_;
  const std::string key_;
  std::vector<std::byte> kept_;  // at most kPartBytes
  std::unique_ptr<ObjectUpload> upload_;
};

// Compares the checksum of a file that is read completely and in order with the one that the store
// reports.
class SumOfReading {
 public:
  SumOfReading(const ObjectInfo& info, std::string url)
      : size_bytes_(info.size_bytes), wanted_(info.crc32c), url_(std::move(url)) {}

  // Throws std::system_error if these are the last bytes and the checksum differs.
  void take(std::uint64_t offset, std::span<const std::byte> bytes) {
    // Only a sequential read covers every byte exactly once.
    if (!wanted_ || offset != end_) return;
    sum_ = data::crc32c(bytes, sum_);
    end_ += bytes.size();
    if (end_ == size_bytes_ && sum_ != *wanted_) {
      throw std::system_error(StoreError::kBadAnswer,
                              "the bytes of " + url_ + " do not match the store's CRC-32C");
    }
  }

 private:
  std::uint64_t size_bytes_;
  std::optional<std::uint32_t> wanted_;  // nullopt: nothing is compared
  std::string url_;
  std::uint64_t end_ = 0;
  std::uint32_t sum_ = 0;
};

}  // namespace

std::string directory_text(std::string_view name) {
  return std::string(kDirectoryHead) + std::string(name) + "\n";
}

std::optional<std::string> directory_from(std::string_view text) {
  if (!text.starts_with(kDirectoryHead) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(kDirectoryHead.size());
  if (text.size() < 2) return std::nullopt;
  text.remove_suffix(1);
  const bool is_name =
      text.find_first_of("/\n") == std::string_view::npos && text != "." && text != "..";
  return is_name ? std::optional(std::string(text)) : std::nullopt;
}

ObjectFileSystem::ObjectFileSystem(std::shared_ptr<ObjectStore> store, std::string root)
    : store_(std::move(store)), root_(std::move(root)) {}

std::string ObjectFileSystem::key_of(const Path& path) const {
  std::string_view rest = path.native();
  if (rest.starts_with(root_)) rest.remove_prefix(root_.size());
  std::string key;
  // Repeated slashes would name another object.
  for (const char c : rest) {
    if (c != '/' || (!key.empty() && key.back() != '/')) key += c;
  }
  if (key.ends_with('/')) key.pop_back();
  return key;
}

std::optional<std::string> ObjectFileSystem::folder_of(const std::string& key) {
  const auto object = store_->open(key + std::string(kDirectoryMark), kMaxDirectoryText);
  if (!object) return std::nullopt;
  const auto name = directory_from(object->bytes);
  if (!name) {
    throw std::system_error(StoreError::kBadAnswer,
                            url_of(object->info.key) + " does not name a directory");
  }
  return beside_key(key, *name);
}

std::string ObjectFileSystem::followed(std::string key) {
  for (int i = 0; i < kMaxFollowed; ++i) {
    std::string next;
    // The nearest named parent first; its target may be named again.
    for (std::string above(parent_key(key)); !above.empty(); above = parent_key(above)) {
      if (const auto folder = folder_of(above)) {
        next = *folder + key.substr(above.size());
        break;
      }
    }
    if (next.empty()) break;
    key = std::move(next);
  }
  return key;
}

ObjectFileSystem::Found ObjectFileSystem::look(const std::string& key) {
  // The bucket itself.
  if (key.empty()) return {.kind = Found::Kind::kFolder, .folder = {}};
  const ObjectListing listing = store_->list(key, false);
  const auto has = [&listing](const std::string& wanted) {
    return std::ranges::find(listing.objects, wanted, &ObjectInfo::key) != listing.objects.end();
  };
  // One listing finds all three: the file, the name of a folder, and the folder itself.
  if (has(key)) return {.kind = Found::Kind::kFile, .folder = {}};
  if (has(key + std::string(kDirectoryMark))) {
    if (const auto folder = folder_of(key)) {
      return {.kind = Found::Kind::kNamed, .folder = *folder};
    }
  }
  if (std::ranges::find(listing.folders, key + "/") != listing.folders.end()) {
    return {.kind = Found::Kind::kFolder, .folder = key};
  }
  return {};
}

bool ObjectFileSystem::is_named(const std::string& folder) {
  // A name lies beside its folder, so only the names there can refer to it.
  const std::string parent(parent_key(folder));
  for (const ObjectInfo& object : store_->list(parent.empty() ? "" : parent + "/", false).objects) {
    if (!object.key.ends_with(kDirectoryMark)) continue;
    if (folder_of(object.key.substr(0, object.key.size() - kDirectoryMark.size())) == folder) {
      return true;
    }
  }
  return false;
}

std::unique_ptr<data::NewFile> ObjectFileSystem::create(const Path& target) {
  // A file in a renamed directory belongs to the key that the directory had at first.
  return std::make_unique<NewObject>(store_, followed(key_of(target)));
}

std::unique_ptr<data::OpenFile> ObjectFileSystem::open(const Path& path) {
  const std::string key = key_of(path);
  auto object = store_->open(key, kReadAtOnce);
  // The plain key first: named directories are rare, and following them costs requests.
  if (!object) {
    if (const std::string other = followed(key); other != key) {
      object = store_->open(other, kReadAtOnce);
    }
  }
  if (!object) throw std::system_error(StoreError::kNotFound, "cannot open " + path.string());
  SumOfReading sum(object->info, url_of(object->info.key));
  // The first piece was read with the metadata, so it counts here.
  sum.take(0, std::as_bytes(std::span(object->bytes.data(), object->bytes.size())));
  // The lambda shares the store, so that a file outlives the file system that opened it.
  const auto read = [store = store_, info = object->info, sum](std::uint64_t offset,
                                                               std::span<std::byte> to) mutable {
    const std::size_t count = store->read(info, offset, to);
    sum.take(offset, to.first(count));
    return count;
  };
  return std::make_unique<ReadAhead>(object->info.size_bytes, object->bytes, read);
}

std::uint64_t ObjectFileSystem::size_of(const Path& path, std::error_code& error) {
  std::uint64_t size = 0;
  error = error_code_of([&]() -> std::error_code {
    const std::string key = key_of(path);
    // The plain key first, as in open().
    auto object = store_->find(key);
    if (!object) {
      if (const std::string other = followed(key); other != key) object = store_->find(other);
    }
    if (!object) return StoreError::kNotFound;
    size = object->size_bytes;
    return {};
  });
  return size;
}

std::filesystem::file_time_type ObjectFileSystem::last_write(const Path& path) {
  const std::string key = followed(key_of(path));
  const Found found = look(key);
  if (found.kind == Found::Kind::kNothing) {
    throw std::system_error(StoreError::kNotFound, "cannot read " + path.string());
  }
  const bool is_file = found.kind == Found::Kind::kFile;
  std::chrono::sys_seconds latest{};
  // Folders have no date: the newest object in one counts.
  for (const ObjectInfo& object : store_->list(is_file ? key : found.folder + "/", true).objects) {
    if (!is_file || object.key == key) latest = std::max(latest, object.modified);
  }
  return file_time(latest);
}

std::filesystem::file_time_type ObjectFileSystem::now(const Path& /*directory*/) {
  return file_time(store_->now());
}

std::optional<std::vector<StoreEntry>> ObjectFileSystem::entries(const Path& directory) {
  std::string key = followed(key_of(directory));
  if (!key.empty()) {
    if (const auto folder = folder_of(key)) key = *folder;
  }
  const std::string prefix = key.empty() ? "" : key + "/";
  const ObjectListing listing = store_->list(prefix, false);
  // A store has no empty folders, but a bucket may be empty.
  if (listing.objects.empty() && listing.folders.empty() && !key.empty()) return std::nullopt;
  std::vector<StoreEntry> found;
  std::set<std::string> hidden;  // folders that have been given another name
  for (const ObjectInfo& object : listing.objects) {
    std::string name = object.key.substr(prefix.size());
    if (name.empty()) continue;  // the marker of an empty folder that consoles create
    if (!name.ends_with(kDirectoryMark)) {
      found.push_back({.name = std::move(name),
                       .size_bytes = object.size_bytes,
                       .modified = file_time(object.modified)});
      continue;
    }
    name.resize(name.size() - kDirectoryMark.size());
    if (const auto folder = folder_of(prefix + name)) {
      hidden.insert(std::string(name_in(*folder)));
      found.push_back(
          {.name = std::move(name), .is_directory = true, .modified = file_time(object.modified)});
    }
  }
  for (const std::string& folder : listing.folders) {
    std::string name = folder.substr(prefix.size(), folder.size() - prefix.size() - 1);
    const bool is_there =
        std::ranges::find(found, name, &StoreEntry::name) != found.end() || hidden.contains(name);
    if (!name.empty() && !is_there) {
      found.push_back({.name = std::move(name), .is_directory = true});
    }
  }
  std::erase_if(found, [](const StoreEntry& entry) { return !is_file_name(entry.name); });
  std::ranges::sort(found, {}, &StoreEntry::name);
  return found;
}

// Does nothing: a directory exists if it contains an object.
bool ObjectFileSystem::create_directory(const Path& /*path*/, std::error_code& error) {
  error.clear();
  return false;
}

std::error_code ObjectFileSystem::rename_keys(const std::string& from, const std::string& to) {
  const Found source = look(from);
  if (source.kind == Found::Kind::kNothing) return StoreError::kNotFound;
  const bool is_file = source.kind == Found::Kind::kFile;
  const bool is_named = source.kind == Found::Kind::kNamed;
  if (is_named && source.folder == to) {  // a rename back to the folder's own key
    store_->remove(from + std::string(kDirectoryMark));
    return {};
  }
  // This check is for a clear error. Of two writers put_new() below decides.
  const Found target = look(to);
  if (target.kind == Found::Kind::kFolder || target.kind == Found::Kind::kNamed) {
    return std::make_error_code(std::errc::directory_not_empty);
  }
  if (is_file) {
    // The copy comes first: a failure in between leaves the file under both names.
    store_->copy(from, to);
    store_->remove(from);
    return {};
  }
  if (target.kind == Found::Kind::kFile) return std::make_error_code(std::errc::not_a_directory);
  if (parent_key(source.folder) != parent_key(to)) {
    // A name refers to a folder beside it; moving one elsewhere would need a copy of every object.
    return std::make_error_code(std::errc::cross_device_link);
  }
  const std::string text = directory_text(name_in(source.folder));
  const std::span bytes(text.data(), text.size());
  // The conditional write makes the rename atomic: of several writers one gets the name.
  if (!store_->put_new(to + std::string(kDirectoryMark), std::as_bytes(bytes))) {
    return StoreError::kExists;
  }
  // The new name exists first: a failure in between leaves the folder under both names.
  if (is_named) store_->remove(from + std::string(kDirectoryMark));
  return {};
}

std::error_code ObjectFileSystem::rename(const Path& from, const Path& to) {
  return error_code_of([&] { return rename_keys(followed(key_of(from)), followed(key_of(to))); });
}

std::error_code ObjectFileSystem::link(const Path& from, const Path& to) {
  return error_code_of([&]() -> std::error_code {
    const std::string source = followed(key_of(from));
    const std::string target = followed(key_of(to));
    if (!store_->find(source)) return StoreError::kNotFound;
    // Two processes may both pass this check: a store has no atomic copy to a new name. The run
    // lock checks again later.
    if (look(target).kind != Found::Kind::kNothing) return StoreError::kExists;
    store_->copy(source, target);
    return {};
  });
}

std::error_code ObjectFileSystem::remove(const Path& path) {
  return error_code_of([&]() -> std::error_code {
    const std::string key = followed(key_of(path));
    const Found found = look(key);
    const auto not_empty = std::make_error_code(std::errc::directory_not_empty);
    switch (found.kind) {
      case Found::Kind::kNothing:
        break;
      case Found::Kind::kFile:
        store_->remove(key);
        break;
      case Found::Kind::kFolder:
        // A folder that has been given another name does not exist here any more.
        return is_named(key) ? std::error_code() : not_empty;
      case Found::Kind::kNamed:
        // Only the name is removed; the objects must be gone already.
        if (!store_->list(found.folder + "/", true).objects.empty()) return not_empty;
        store_->remove(key + std::string(kDirectoryMark));
        break;
    }
    return {};
  });
}

// Does nothing: an answered request is durable.
void ObjectFileSystem::sync_directory(const Path& /*directory*/) {}

}  // namespace disttf::roles
