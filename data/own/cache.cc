#include "data/own/cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/file.h"
#include "data/json/json_text.h"
#include "data/own/row_source.h"
#include "data/posix_file_system.h"

namespace disttf::data {
namespace {

using Json = nlohmann::json;
using Path = std::filesystem::path;

// Increase it when the format changes; older folders are then converted again.
constexpr int kCacheVersion = 4;
// An index has an entry per column and class, so a larger file is damaged.
constexpr std::size_t kMostIndexBytes = std::size_t{64} << 20U;
constexpr const char* kIndexName = "index.json";

[[noreturn]] void fail_at(const std::string& what, const Path& path) {
  throw std::system_error(errno, std::generic_category(), what + " " + path.string());
}

Path examples_of(const Path& directory, Part part) {
  return directory / (std::string(part_name(part)) + ".examples");
}
Path labels_of(const Path& directory, Part part) {
  return directory / (std::string(part_name(part)) + ".labels");
}

// A new file that is written sequentially.
class GrowingFile {
 public:
  explicit GrowingFile(Path path)
      : path_(std::move(path)),
        // O_RDWR, because finish() maps the labels of the file that it has written. O_EXCL, because
        // the folder is new and nothing may be there.
        file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (!file_.is_open()) fail_at("cannot create", path_);
  }
  void append(std::span<const std::byte> bytes) {
    // Writes in large pieces, because rows are small and each write() is a system call.
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void flush() {
    for (std::span<const std::byte> left = buffer_; !left.empty();) {
      const ssize_t count = ::write(file_.number(), left.data(), left.size());
      // A write() can accept fewer bytes than it was given, for example on a nearly full disk; the
      // loop continues with the rest.
      if (count < 0 && errno != EINTR) fail_at("cannot write", path_);
      if (count > 0) left = left.subspan(static_cast<std::size_t>(count));
    }
    buffer_.clear();
  }
  void sync() {
    if (::fsync(file_.number()) != 0) fail_at("cannot sync", path_);
  }
  [[nodiscard]] int number() const noexcept { return file_.number(); }
  [[nodiscard]] const Path& path() const noexcept { return path_; }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
  Path path_;
  FileDescriptor file_;
  std::vector<std::byte> buffer_;
};

// Maps a file while the object lives; an empty file has no mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int file, std::size_t bytes, int protection, int flags, const Path& path)
      : bytes_(bytes) {
    if (bytes == 0) return;
    at_ = ::mmap(nullptr, bytes, protection, flags, file, 0);
    if (at_ == MAP_FAILED) {
      at_ = nullptr;
      fail_at("cannot map", path);
    }
  }
  Mapping(Mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    // The other object's destructor then unmaps what this one held before.
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(at_), bytes_};
  }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

Json json_of(const ColumnSummary& column) {
  return {{"name", column.name},           {"least", column.least},
          {"most", column.most},           {"mean", column.mean},
          {"deviation", column.deviation}, {"counts_rows", column.counts_rows}};
}

// Returns everything except the source and the checksum.
Json contents_of(const CacheIndex& index) {
  Json columns = Json::array();
  for (const ColumnSummary& column : index.columns) {
    columns.push_back(json_of(column));
  }
  Json parts = Json::object();
  for (std::size_t i = 0; i < kParts; ++i) {
    const CachedPart& part = index.parts[i];
    parts[part_name(static_cast<Part>(i))] = {{"rows", part.rows},
                                              {"examples_sha256", part.examples_sha256},
                                              {"labels_sha256", part.labels_sha256},
                                              {"rows_of_class", part.rows_of_class}};
  }
  // The checksum covers this text, so the keys, their order and the number format are part of the
  // format.
  return {{"version", kCacheVersion},
          {"name", index.name},
          {"label_column", index.label_column},
          {"classes", index.classes},
          {"target", index.target ? json_of(*index.target) : Json()},
          {"columns", std::move(columns)},
          {"images", index.images
                         ? Json{index.images->height, index.images->width, index.images->channels}
                         : Json()},
          {"parts", std::move(parts)}};
}

std::string checksum_of(const CacheIndex& index) {
  // ASCII only, so the checksum does not depend on how a reader encodes other characters.
  const std::string text = json_text(contents_of(index), {.only_ascii = true});
  return sha256_hex(std::as_bytes(std::span(text)));
}

ColumnSummary column_from(const Json& json) {
  return {.name = json.at("name"),
          .least = json.at("least"),
          .most = json.at("most"),
          .mean = json.at("mean"),
          .deviation = json.at("deviation"),
          .counts_rows = json.at("counts_rows")};
}

// Parses the form that contents_of() writes. Throws Json::exception for anything else.
CacheIndex index_from(const Json& json) {
  CacheIndex index;
  index.name = json.at("name");
  index.source = json.at("source");
  index.label_column = json.at("label_column");
  index.classes = json.at("classes").get<std::vector<std::string>>();
  if (!json.at("target").is_null()) {
    index.target = column_from(json.at("target"));
  }
  for (const Json& column : json.at("columns")) {
    index.columns.push_back(column_from(column));
  }
  if (const Json& images = json.at("images"); !images.is_null()) {
    index.images = {.height = images.at(0), .width = images.at(1), .channels = images.at(2)};
  }
  for (std::size_t i = 0; i < kParts; ++i) {
    const Json& part = json.at("parts").at(part_name(static_cast<Part>(i)));
    index.parts[i] = {.rows = part.at("rows"),
                      .examples_sha256 = part.at("examples_sha256"),
                      .labels_sha256 = part.at("labels_sha256"),
                      .rows_of_class = part.at("rows_of_class").get<std::vector<std::uint64_t>>()};
  }
  index.checksum = json.at("checksum");
  index.warnings = json.at("warnings").get<std::vector<std::string>>();
  return index;
}

// The memory that a data set's spans refer to.
struct CacheStorage {
  CacheIndex index;
  std::array<Mapping, kParts> examples;
  std::array<Mapping, kParts> labels;
  std::vector<std::string_view> class_names;
  std::vector<std::string_view> column_names;
  std::vector<float> means;
  std::vector<float> scales;
};

std::string sha256_of(const FileDescriptor& file, const Path& path,
                      const std::function<void()>& on_block) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;
  Sha256 sum;
  std::vector<std::byte> block(kBlockBytes);
  // pread() leaves the descriptor's position alone, so the caller can map the same descriptor
  // afterwards.
  for (off_t offset = 0;;) {
    const ssize_t count = ::pread(file.number(), block.data(), block.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_at("cannot read", path);
    if (count == 0) return sum.hex();
    // Called for each block, so that a run that ends does not wait for the hash of a large file.
    if (on_block) on_block();
    sum.update(std::span(block).first(static_cast<std::size_t>(count)));
    offset += count;
  }
}

Mapping map_verified(const Path& path, std::size_t bytes, const std::string& sha256,
                     const std::function<void()>& on_block) {
  struct stat status {};
  // The mapping below keeps the file's contents alive after this descriptor is closed.
  const FileDescriptor file = open_for_reading(path, status);
  // The cheap check first: hashing a large file takes seconds.
  if (static_cast<std::size_t>(status.st_size) != bytes) {
    throw UnusableData(path.string() + ": " + std::to_string(status.st_size) +
                       " bytes where its index says " + std::to_string(bytes) +
                       "; remove the folder to have it created again");
  }
  // Reads the file instead of hashing the mapping, so that a file larger than memory does not evict
  // everything else.
  if (sha256_of(file, path, on_block) != sha256) {
    throw UnusableData(path.string() +
                       ": its SHA-256 is not the one in its index; remove the folder to have it "
                       "created again");
  }
  return {file.number(), bytes, PROT_READ, MAP_PRIVATE, path};
}

}  // namespace

// ----------------------------------------------------------------------------------------- writing

struct CacheWriter::PartFiles {
  PartFiles(const Path& directory, Part part)
      : examples(examples_of(directory, part)), labels(labels_of(directory, part)) {}

  // Replaces labels by their final indices and counts them, if there are classes.
  void finish(CachedPart& part, std::span<const std::uint8_t> final_places, std::size_t classes) {
    examples.flush();
    // Synced before the index is written, so a complete index never refers to incomplete files.
    examples.sync();
    // The labels are synced after they have been renumbered below.
    labels.flush();
    part.rows = rows;
    part.examples_sha256 = sum.hex();
    part.rows_of_class.assign(classes, 0);
    const std::size_t label_bytes = classes == 0 ? sizeof(float) : 1;
    // The labels are one byte or float each, so mapping them is possible even for large sets.
    const Mapping mapped(labels.number(), rows * label_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                         labels.path());
    for (std::byte& label : mapped.bytes().first(classes == 0 ? 0 : rows)) {
      // While rows are read, a class has the index of its first occurrence. The final indices
      // follow the order of the names, so they do not depend on the order of the rows.
      const std::uint8_t place = final_places[std::to_integer<std::size_t>(label)];
      ++part.rows_of_class[place];
      label = std::byte{place};
    }
    part.labels_sha256 = sha256_hex(mapped.bytes());
    labels.sync();
  }
  void append(std::span<const std::byte> rows_bytes, std::span<const std::byte> label_bytes,
              std::size_t count) {
    examples.append(rows_bytes);
    sum.update(rows_bytes);
    labels.append(label_bytes);
    rows += count;
  }

  GrowingFile examples;
  GrowingFile labels;
  Sha256 sum;  // of the examples
  std::uint64_t rows = 0;
};

CacheWriter::CacheWriter(Path directory) : directory_(std::move(directory)) {
  // Beside the final folder, because rename() works only within one file system.
  std::string name = directory_.string() + std::string(kTemporaryMark) + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) fail_at("cannot create", name);
  temporary_ = name;
  // mkdtemp permits access only to its user, but tasks under other users may train on the data.
  const FileDescriptor opened(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A failure is ignored: the folder is then usable for this user alone.
  static_cast<void>(::fchmod(opened.number(), 0755));
  for (std::size_t i = 0; i < kParts; ++i) {
    parts_[i] = std::make_unique<PartFiles>(temporary_, static_cast<Part>(i));
  }
}

CacheWriter::~CacheWriter() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary_, ignored);
  }
}

void CacheWriter::append(Part part, std::span<const float> numbers,
                         std::span<const std::uint8_t> labels) {
  parts_[static_cast<std::size_t>(part)]->append(std::as_bytes(numbers), std::as_bytes(labels),
                                                 labels.size());
}

void CacheWriter::append(Part part, std::span<const float> numbers,
                         std::span<const float> targets) {
  parts_[static_cast<std::size_t>(part)]->append(std::as_bytes(numbers), std::as_bytes(targets),
                                                 targets.size());
}

void CacheWriter::append(Part part, std::span<const std::uint8_t> pixels,
                         std::span<const std::uint8_t> labels) {
  parts_[static_cast<std::size_t>(part)]->append(std::as_bytes(pixels), std::as_bytes(labels),
                                                 labels.size());
}

void CacheWriter::finish(CacheIndex& index, std::span<const std::uint8_t> final_places) {
  for (std::size_t i = 0; i < kParts; ++i) {
    parts_[i]->finish(index.parts[i], final_places, index.classes.size());
  }
  // The checksum follows the parts, whose SHA-256 it covers.
  index.checksum = checksum_of(index);
  Json json = contents_of(index);
  // Outside of the checksum: it covers folders and times of the files, and copies of the same data
  // must have the same checksum.
  json["source"] = index.source;
  json["checksum"] = index.checksum;
  json["warnings"] = index.warnings;
  const std::string text = json_text(json, {.indent = 1, .only_ascii = true}) + "\n";
  const auto bytes = std::as_bytes(std::span(text));
  GrowingFile file(temporary_ / kIndexName);
  file.append(bytes);
  file.flush();
  file.sync();
  // All names inside are durable before the folder gets the name under which readers trust it.
  sync_directory(temporary_);
  // A task that has mapped the old files keeps their contents. A crash between the two renames
  // leaves no folder of that name, so the data is converted again; the next conversion removes the
  // others.
  replace_directory(temporary_, directory_);
  // From here on the destructor has nothing to remove.
  temporary_.clear();
  sync_directory(directory_.has_parent_path() ? directory_.parent_path() : Path("."));
}

// ----------------------------------------------------------------------------------------- reading

std::optional<CacheIndex> read_cache_index(const Path& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory / kIndexName, error)) {
    return std::nullopt;
  }
  constexpr std::size_t kDeepest = 8;
  const std::vector<std::uint8_t> bytes = read_file(directory / kIndexName, kMostIndexBytes);
  const std::string text(bytes.begin(), bytes.end());
  // The depth is limited, because the file may have been changed by other programs.
  const Json json = parse_json(text, kDeepest);
  try {
    if (!json.is_object() || json.at("version") != kCacheVersion) {
      return std::nullopt;
    }
    // The number of rows per class must match the list of classes, or later code would read past
    // its end.
    CacheIndex index = index_from(json);
    const auto is_whole = [&index](const CachedPart& part) {
      return part.rows_of_class.size() == index.classes.size();
    };
    // A changed index is ignored rather than used: its means and classes affect the training.
    if (checksum_of(index) != index.checksum || !std::ranges::all_of(index.parts, is_whole)) {
      return std::nullopt;
    }
    return index;
  } catch (const Json::exception&) {
    // A damaged index is treated like a missing one: the conversion replaces it.
    return std::nullopt;
  }
}

namespace {

// Returns the scale for training on a column. A constant column carries no information and becomes
// 0.
float scale_of(const ColumnSummary& column) {
  // A deviation so small that its inverse is infinite or denormal would make every input infinite
  // or zero.
  // The negated comparison also covers NaN.
  const bool is_constant = !(column.deviation > 0) || !std::isnormal(1 / column.deviation);
  return is_constant ? 1.0F : static_cast<float>(1 / column.deviation);
}

// Maps a part and points `split` at its memory.
void open_part(const Path& directory, Part part, const std::function<void()>& on_block,
               CacheStorage& storage, Split& split) {
  const CacheIndex& index = storage.index;
  const auto place = static_cast<std::size_t>(part);
  const CachedPart& cached = index.parts[place];
  const std::size_t example_bytes =
      index.images ? index.images->size() : index.columns.size() * sizeof(float);
  const std::size_t label_bytes = index.target ? sizeof(float) : 1;
  Mapping& examples = storage.examples[place];
  Mapping& labels = storage.labels[place];
  examples = map_verified(examples_of(directory, part), cached.rows * example_bytes,
                          cached.examples_sha256, on_block);
  labels = map_verified(labels_of(directory, part), cached.rows * label_bytes, cached.labels_sha256,
                        on_block);
  // A mapping begins at a page boundary, so it is aligned for floats.
  if (index.images) {
    split.images = {reinterpret_cast<const std::uint8_t*>(examples.bytes().data()),
                    examples.bytes().size()};
  } else {
    split.numbers = {reinterpret_cast<const float*>(examples.bytes().data()),
                     examples.bytes().size() / sizeof(float)};
  }
  if (index.target) {
    split.targets = {reinterpret_cast<const float*>(labels.bytes().data()), cached.rows};
    return;
  }
  split.labels = {reinterpret_cast<const std::uint8_t*>(labels.bytes().data()), cached.rows};
  // The labels index arrays of classes, so each is checked although the file's checksum is right.
  for (const std::uint8_t label : split.labels) {
    if (label >= index.classes.size()) {
      throw UnusableData(labels_of(directory, part).string() + ": class " + std::to_string(label) +
                         " of " + std::to_string(index.classes.size()));
    }
  }
}

}  // namespace

Dataset open_cache(const Path& directory, const CacheIndex& index,
                   const std::function<void()>& on_block) {
  auto storage = std::make_shared<CacheStorage>();
  // The views below refer to the copy in `storage`, which lives as long as the data set.
  storage->index = index;
  Dataset dataset;
  open_part(directory, Part::kTrain, on_block, *storage, dataset.train);
  open_part(directory, Part::kValidation, on_block, *storage, dataset.validation);
  open_part(directory, Part::kTest, on_block, *storage, dataset.test);
  for (const std::string& name : storage->index.classes) {
    storage->class_names.emplace_back(name);
  }
  for (const ColumnSummary& column : storage->index.columns) {
    storage->column_names.emplace_back(column.name);
    storage->means.push_back(static_cast<float>(column.mean));
    storage->scales.push_back(scale_of(column));
  }
  dataset.name = index.name;
  dataset.checksum = index.checksum;
  dataset.shape =
      index.images.value_or(ImageShape{.height = 1, .width = 1, .channels = index.columns.size()});
  dataset.classes = index.classes.size();
  dataset.class_names = storage->class_names;
  dataset.column_names = storage->column_names;
  dataset.label_name = storage->index.label_column;
  dataset.means = storage->means;
  dataset.scales = storage->scales;
  if (index.target) {
    dataset.target_mean = static_cast<float>(index.target->mean);
    dataset.target_scale = scale_of(*index.target);
  }
  dataset.storage = std::move(storage);
  return dataset;
}

}  // namespace disttf::data
