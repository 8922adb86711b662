#include "storage/store/shell/hdfs_file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "data/posix_file_system.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "storage/store/core/object_store.h"
#include "storage/store/core/store_error.h"
#include "storage/store/core/store_file_system.h"
#include "storage/store/shell/parts_under_way.h"

namespace disttf::roles {
namespace {

std::filesystem::file_time_type file_time(HdfsTime time) {
  return std::chrono::time_point_cast<std::filesystem::file_time_type::duration>(
      std::chrono::file_clock::from_sys(time));
}

[[noreturn]] void throw_bad_answer(const HdfsClient& client, const std::string& what,
                                   const std::string& path) {
  throw std::system_error(StoreError::kBadAnswer, what + " " + client.url_of(path));
}

std::optional<HdfsStatus> status_at(HdfsClient& client, const std::string& path) {
  std::string answer;
  try {
    answer = client.ask({.method = "GET", .operation = "GETFILESTATUS", .path = path});
  } catch (const std::system_error& error) {
    if (error.code() == StoreError::kNotFound) return std::nullopt;
    throw;
  }
  auto status = read_hdfs_status(answer);
  if (!status) throw_bad_answer(client, "GETFILESTATUS", path);
  return status;
}

// `how`: "OVERWRITE" replaces the target, "NONE" fails if it exists. (Without either, a rename onto
// a directory moves into it.)
void rename_at(HdfsClient& client, const std::string& from, const std::string& to,
               const char* how) {
  bool was_repeated = false;
  try {
    static_cast<void>(client.ask({.method = "PUT",
                                  .operation = "RENAME",
                                  .path = from,
                                  .query = {{"destination", to}, {"renameoptions", how}}},
                                 &was_repeated));
  } catch (const std::system_error& error) {
    // A retried rename whose source is gone and whose target exists has succeeded before.
    const bool is_done =
        was_repeated && error.code() == StoreError::kNotFound && status_at(client, to);
    if (!is_done) throw;
  }
}

// Each piece is a file until all are written. Closing one waits until the DataNode reports to the
// NameNode, often 0.4 s, so several are written at once.
class NewHdfsFile final : public data::NewFile {
 public:
  NewHdfsFile(std::shared_ptr<HdfsClient> client, std::string target)
      : client_(std::move(client)),
        target_(std::move(target)),
        temporary_(fmt::format("{}{}{:016x}", target_, data::kTemporaryMark, random_number())),
        parts_([this](std::size_t number, auto bytes) { return create(number - 1, bytes); }) {}

  ~NewHdfsFile() override {
    // No piece may appear after its removal.
    parts_.wait();
    for (std::size_t i = 0; i < begun_; ++i) {
      // Joined pieces are parts of the first one and no longer exist.
      if (i != 0 && i < joined_) continue;
      try {
        static_cast<void>(
            client_->ask({.method = "DELETE", .operation = "DELETE", .path = part(i)}));
      } catch (const std::exception& error) {
        log_debug(std::string("cannot remove a part of a file: ") + error.what());
      }
    }
  }

  void write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      // Only when the next byte comes, so that a file of one piece need not be joined.
      if (kept_.size() == kPartBytes) send();
      const auto taken = bytes.first(std::min(bytes.size(), kPartBytes - kept_.size()));
      const auto as_bytes = std::as_bytes(taken);
      kept_.insert(kept_.end(), as_bytes.begin(), as_bytes.end());
      bytes = bytes.subspan(taken.size());
    }
  }

  // Sends the rest: what a DataNode has acknowledged is kept.
  void sync() override {
    // An empty file takes a piece, too.
    if (!kept_.empty() || begun_ == 0) send();
    // Waits for the pieces on their way.
    static_cast<void>(parts_.finish());
    // A single piece is the file already.
    if (begun_ > std::max<std::size_t>(joined_, 1)) join();
    joined_ = begun_;
  }

  void take_name() override { take_name("OVERWRITE"); }

  // The same, if the name is free.
  void take_new_name() { take_name("NONE"); }

 private:
  void send() {
    ++begun_;
    parts_.add(kept_);
    kept_.clear();
  }

  // Writes a piece again if its first try broke off: HDFS allows that under its own name. For any
  // thread.
  std::string create(std::size_t index, std::span<const std::byte> bytes) {
    return client_->ask({.method = "PUT",
                         .operation = "CREATE",
                         .path = part(index),
                         // A missing directory is an error, as on a disk.
                         .query = {{"overwrite", "true"}, {"createparent", "false"}},
                         .is_at_data_node = true,
                         .body = bytes});
  }

  // Concatenates all pieces into the first.
  void join() {
    std::string sources;
    for (std::size_t i = std::max<std::size_t>(joined_, 1); i < begun_; ++i) {
      sources += (sources.empty() ? "" : ",") + part(i);
    }
    bool was_repeated = false;
    try {
      static_cast<void>(client_->ask({.method = "POST",
                                      .operation = "CONCAT",
                                      .path = part(0),
                                      .query = {{"sources", sources}}},
                                     &was_repeated));
    } catch (const std::system_error&) {
      // A retried concatenation whose sources are gone has succeeded if the size is right.
      const auto joined = was_repeated ? status_at(*client_, part(0)) : std::nullopt;
      if (!joined || joined->size_bytes != parts_.bytes()) throw;
    }
  }

  void take_name(const char* how) {
    sync();
    rename_at(*client_, temporary_, target_, how);
    begun_ = 0;  // nothing has to be removed
  }

  [[nodiscard]] std::string part(std::size_t index) const {
    return index == 0 ? temporary_ : fmt::format("{}-{}", temporary_, index);
  }

  const std::shared_ptr<HdfsClient> client_;
  const std::string target_;
  const std::string temporary_;
  std::vector<std::byte> kept_;  // at most kPartBytes
  std::size_t begun_ = 0;        // parts that may exist
  std::size_t joined_ = 0;       // how many of these the first one contains
  PartsUnderWay parts_;
};

}  // namespace

HdfsFileSystem::HdfsFileSystem(const StoreUrl& root, const StoreEnvironment& environment)
    : root_(to_string(root)), client_(std::make_shared<HdfsClient>(root, environment)) {}

std::string HdfsFileSystem::path_of(const Path& path) const {
  std::string_view rest = path.native();
  if (rest.starts_with(root_)) rest.remove_prefix(root_.size());
  std::string name = "/";
  for (const char c : rest) {
    if (c != '/' || name.back() != '/') name += c;
  }
  if (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

std::unique_ptr<data::NewFile> HdfsFileSystem::create(const Path& target) {
  return std::make_unique<NewHdfsFile>(client_, path_of(target));
}

std::unique_ptr<data::OpenFile> HdfsFileSystem::open(const Path& path) {
  const std::string name = path_of(path);
  const auto found = status_at(*client_, name);
  if (!found || found->is_directory) {
    throw std::system_error(found ? std::make_error_code(std::errc::is_a_directory)
                                  : make_error_code(StoreError::kNotFound),
                            "cannot open " + path.string());
  }
  const auto read = [client = client_, name](std::uint64_t offset, std::span<std::byte> to) {
    const std::string bytes = client->ask(
        {.method = "GET",
         .operation = "OPEN",
         .path = name,
         .query = {{"offset", std::to_string(offset)}, {"length", std::to_string(to.size())}},
         .is_at_data_node = true,
         .expected_bytes = to.size()});
    // The client has compared the size with expected_bytes.
    std::memcpy(to.data(), bytes.data(), bytes.size());
    return bytes.size();
  };
  return std::make_unique<ReadAhead>(found->size_bytes, "", read);
}

std::uint64_t HdfsFileSystem::size_of(const Path& path, std::error_code& error) {
  std::uint64_t size = 0;
  error = error_code_of([&]() -> std::error_code {
    const auto found = status_at(*client_, path_of(path));
    if (!found || found->is_directory) return StoreError::kNotFound;
    size = found->size_bytes;
    return {};
  });
  return size;
}

std::filesystem::file_time_type HdfsFileSystem::last_write(const Path& path) {
  const auto found = status_at(*client_, path_of(path));
  if (!found) throw std::system_error(StoreError::kNotFound, "cannot read " + path.string());
  return file_time(found->modified);
}

std::filesystem::file_time_type HdfsFileSystem::now(const Path& /*directory*/) {
  return file_time(client_->now());
}

std::optional<std::vector<StoreEntry>> HdfsFileSystem::entries(const Path& directory) {
  const std::string path = path_of(directory);
  std::string answer;
  try {
    answer = client_->ask({.method = "GET", .operation = "LISTSTATUS", .path = path});
  } catch (const std::system_error& error) {
    if (error.code() == StoreError::kNotFound) return std::nullopt;
    throw;
  }
  const auto listing = read_hdfs_listing(answer);
  if (!listing) throw_bad_answer(*client_, "LISTSTATUS", path);
  // LISTSTATUS of a file lists the file itself, without a name.
  if (listing->size() == 1 && listing->front().name.empty()) return std::nullopt;  // a file
  std::vector<StoreEntry> found;
  for (const HdfsStatus& each : *listing) {
    found.push_back({.name = each.name,
                     .is_directory = each.is_directory,
                     .size_bytes = each.size_bytes,
                     .modified = file_time(each.modified)});
  }
  std::ranges::sort(found, {}, &StoreEntry::name);
  return found;
}

bool HdfsFileSystem::create_directory(const Path& path, std::error_code& error) {
  bool is_new = false;
  error = error_code_of([&]() -> std::error_code {
    const std::string name = path_of(path);
    // MKDIRS succeeds for an existing directory, too, so it does not tell whether this is a new
    // one.
    if (const auto found = status_at(*client_, name)) {
      return found->is_directory ? std::error_code() : make_error_code(StoreError::kExists);
    }
    static_cast<void>(client_->ask({.method = "PUT", .operation = "MKDIRS", .path = name}));
    is_new = true;
    return {};
  });
  return is_new;
}

std::error_code HdfsFileSystem::rename(const Path& from, const Path& to) {
  return error_code_of([&]() -> std::error_code {
    // HDFS replaces no directory that has entries, as rename(2) does not.
    rename_at(*client_, path_of(from), path_of(to), "OVERWRITE");
    return {};
  });
}

// HDFS has no hard links: copies the file.
std::error_code HdfsFileSystem::link(const Path& from, const Path& to) {
  return error_code_of([&]() -> std::error_code {
    const std::string target = path_of(to);
    // Before the copy, which may take long. The rename decides if another process is faster.
    if (status_at(*client_, target)) return StoreError::kExists;
    const auto source = open(from);
    NewHdfsFile copy(client_, target);
    std::vector<std::byte> buffer(kReadAtOnce);
    for (std::uint64_t at = 0; at < source->size_bytes();) {
      const std::size_t count = source->read(at, buffer);
      copy.write({reinterpret_cast<const std::uint8_t*>(buffer.data()), count});
      at += count;
    }
    // Fails if another process has taken the name meanwhile: of two writers one gets it.
    copy.take_new_name();
    return {};
  });
}

std::error_code HdfsFileSystem::remove(const Path& path) {
  return error_code_of([&]() -> std::error_code {
    static_cast<void>(client_->ask({.method = "DELETE",
                                    .operation = "DELETE",
                                    .path = path_of(path),
                                    .query = {{"recursive", "false"}}}));
    return {};
  });
}

// Does nothing: an acknowledged operation is in the NameNode's log.
void HdfsFileSystem::sync_directory(const Path& /*directory*/) {}

}  // namespace disttf::roles
