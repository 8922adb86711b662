#include "data/own/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/file.h"
#include "data/own/cache.h"
#include "data/own/image_file.h"
#include "data/own/in_order.h"
#include "data/own/lower_case.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

constexpr std::array<std::string_view, 3> kImageEndings = {".png", ".jpg", ".jpeg"};
// Image formats that cannot be read. They cause an error instead of being ignored, because the user
// would miss those images.
constexpr std::array<std::string_view, 8> kOtherImageEndings = {".bmp",  ".gif",  ".webp", ".tif",
                                                                ".tiff", ".avif", ".heic", ".ppm"};
constexpr std::size_t kMostFolderClasses = 256;  // a label is one byte
// Larger files are refused, because each thread holds one file in memory.
constexpr std::size_t kMostImageFileBytes = std::size_t{256} << 20U;
// The size of a block, and the unit of work of a thread.
constexpr std::size_t kImageBlockBytes = std::size_t{4} << 20U;
constexpr std::size_t kMostBlockImages = 256;

template <typename Endings>
bool ends_with_one_of(const Path& path, const Endings& endings) {
  return std::ranges::find(endings, lower_case(path.extension().string())) != endings.end();
}

// The contents of a directory by name, without hidden names, with links resolved.
struct Listing {
  std::vector<Path> folders;
  std::vector<Path> files;
};

class Lister {
 public:
  explicit Lister(const Path& root)
      : name_(root.string()), root_(std::filesystem::canonical(root).string()) {}

  [[nodiscard]] Listing list(const Path& directory) const {
    Listing listing;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      // Hidden names are files of the system or an editor.
      if (entry.path().filename().string().starts_with('.')) continue;
      // A folder from another source could otherwise link to private files and leak them into a
      // model.
      if (entry.is_symlink()) check_link(entry.path());
      // is_directory() follows links, so a link inside the folder counts as what it leads to.
      (entry.is_directory() ? listing.folders : listing.files).push_back(entry.path());
    }
    if (error) throw std::system_error(error, "--data: cannot read " + directory.string());
    // The order of a directory is arbitrary; sorting makes the classes and rows the same on every
    // machine.
    std::ranges::sort(listing.folders);
    std::ranges::sort(listing.files);
    return listing;
  }

 private:
  void check_link(const Path& link) const {
    std::error_code error;
    const std::string target = std::filesystem::canonical(link, error).string();
    if (error) throw std::system_error(error, "--data: cannot follow " + link.string());
    // With the slash, so that /data/pets2 does not count as inside /data/pets.
    if (!target.starts_with(root_ == "/" ? root_ : root_ + "/")) {
      throw UnusableData("--data: " + link.string() + " leads out of " + name_ +
                         "; only files inside the folder are read");
    }
  }
  std::string name_;
  std::string root_;
};

bool has_images_in(const Lister& lister, const Path& directory) {
  return std::ranges::any_of(lister.list(directory).files, [](const Path& path) {
    return ends_with_one_of(path, kImageEndings);
  });
}

// Returns the images of one class.
std::vector<Path> images_of_class(const Lister& lister, const Path& directory) {
  const Listing listing = lister.list(directory);
  // A nested folder is probably a level that was not meant as a class, so its images are not
  // ignored silently.
  if (!listing.folders.empty()) {
    throw UnusableData("--data: " + listing.folders.front().string() +
                       " is a folder inside a class folder, which may contain only images");
  }
  std::vector<Path> images;
  for (const Path& path : listing.files) {
    if (ends_with_one_of(path, kImageEndings)) {
      images.push_back(path);
    } else if (ends_with_one_of(path, kOtherImageEndings)) {
      throw UnusableData("--data: " + path.string() + ": .png, .jpg and .jpeg are read");
    }
  }
  if (images.empty()) {
    throw UnusableData("--data: " + directory.string() +
                       " is a class folder without images (.png, .jpg, .jpeg)");
  }
  return images;
}

// Hashes a line per file instead of keeping the lines, because there may be a million files.
class Fingerprint {
 public:
  std::uint64_t add(const Path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      throw std::system_error(errno, std::generic_category(),
                              "--data: cannot read " + path.string());
    }
    const std::string line = file_fingerprint(path, status);
    sum_.update(std::as_bytes(std::span(line)));
    return static_cast<std::uint64_t>(status.st_size);
  }
  [[nodiscard]] std::string text() { return sum_.hex() + "\n"; }

 private:
  Sha256 sum_;
};

ClassFolders folders_of_part(const Lister& lister, const Path& directory,
                             std::optional<Part> part) {
  ClassFolders result;
  result.path = directory;
  result.part = part;
  Fingerprint fingerprint;
  for (const Path& folder : lister.list(directory).folders) {
    // All files of a class are adjacent in the list; the sampler permutes the rows later.
    for (Path& path : images_of_class(lister, folder)) {
      result.bytes += fingerprint.add(path);
      result.labels.push_back(static_cast<std::uint32_t>(result.classes.size()));
      result.files.push_back(std::move(path));
    }
    result.classes.push_back(folder.filename().string());
    if (result.classes.size() > kMostFolderClasses) {
      throw UnusableData("--data: " + directory.string() + " has more than " +
                         std::to_string(kMostFolderClasses) + " class folders, which is the limit");
    }
  }
  if (result.classes.empty()) {
    throw UnusableData("--data: " + directory.string() + " has no class folders");
  }
  // Names, sizes and times of all files: adding, removing or changing an image leads to a new
  // conversion.
  result.fingerprint = fingerprint.text();
  return result;
}

std::optional<Part> part_called(const Path& folder) {
  return part_from_word(lower_case(folder.filename().string()));
}

// Consecutive files that one thread processes.
struct Batch {
  const ClassFolders* part = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct FoundSize {
  Path path;
  ImageSize size;
};

// The size that all images of a batch share, taken from the first, and whether any has colours.
struct BatchSizes {
  FoundSize first;
  bool has_colours = false;
  std::uint64_t bytes = 0;
};

std::string sizes_text(const ImageSize& size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

void require_same(const FoundSize& one, const FoundSize& other) {
  if (one.size.height != other.size.height || one.size.width != other.size.width) {
    throw UnusableData(other.path.string() + " has " + sizes_text(other.size) + " pixels, " +
                       one.path.string() + " has " + sizes_text(one.size) +
                       "; images of one size are expected");
  }
}

// Reads only the beginning of a file if that contains the size, because a photograph has megabytes.
ImageSize size_of(const Path& path, std::uint64_t& file_bytes) {
  constexpr std::size_t kHeadBytes = std::size_t{64} << 10U;
  struct stat status {};
  const FileDescriptor file = open_for_reading(path, status);
  file_bytes = static_cast<std::uint64_t>(status.st_size);
  const std::vector<std::uint8_t> head = read_open_file(file, kHeadBytes, path);
  // The header may lie after long metadata, so the whole file is read if the beginning is not
  // enough.
  try {
    return image_size(head, path.string());
  } catch (const UnusableData&) {
    // The whole file has been seen, so its size really is missing.
    if (file_bytes <= head.size()) throw;
  }
  return image_size(read_file(path, kMostImageFileBytes), path.string());
}

// Stops work that is no longer needed.
void throw_if_set(const std::atomic<bool>& is_stopped) {
  // No caller sees this error: it ends only work whose results are discarded.
  if (is_stopped) throw UnusableData("reading was stopped");
}

// Signals the working threads to stop before a destructor waits for them.
class StopsWork {
 public:
  explicit StopsWork(std::atomic<bool>& is_stopped) : is_stopped_(is_stopped) {}
  ~StopsWork() { is_stopped_ = true; }
  StopsWork(const StopsWork&) = delete;
  StopsWork& operator=(const StopsWork&) = delete;

 private:
  std::atomic<bool>& is_stopped_;
};

BatchSizes sizes_of(const Batch& batch, const std::atomic<bool>& is_stopped) {
  BatchSizes sizes;
  for (std::size_t i = batch.begin; i < batch.end; ++i) {
    throw_if_set(is_stopped);
    const Path& path = batch.part->files[i];
    std::uint64_t file_bytes = 0;
    const FoundSize found = {.path = path, .size = size_of(path, file_bytes)};
    if (i == batch.begin) {
      sizes.first = found;
    }
    // Within a batch against its first image; find_shape() compares the batches with each other.
    require_same(sizes.first, found);
    sizes.has_colours = sizes.has_colours || !found.size.is_grey;
    sizes.bytes += file_bytes;
  }
  return sizes;
}

struct DecodedBatch {
  RowBlock block;
  std::uint64_t bytes = 0;
};

DecodedBatch decoded(const Batch& batch, const ImageShape& shape,
                     const std::atomic<bool>& is_stopped) {
  DecodedBatch result;
  RowBlock& block = result.block;
  block.pixels.resize((batch.end - batch.begin) * shape.size());
  // All classes of the part are words of every block, so a label is the index of its folder.
  block.words = batch.part->classes;
  for (std::size_t i = batch.begin; i < batch.end; ++i) {
    const Path& path = batch.part->files[i];
    throw_if_set(is_stopped);
    // The file is read again although its size was read before: keeping all files would need the
    // memory of the whole set.
    const std::vector<std::uint8_t> file = read_file(path, kMostImageFileBytes);
    decode_image(file, path.string(), shape.channels,
                 std::span(block.pixels).subspan((i - batch.begin) * shape.size(), shape.size()),
                 &is_stopped);
    block.labels.push_back(batch.part->labels[i]);
    result.bytes += file.size();
  }
  return result;
}

class ImageSource final : public RowSource {
 public:
  ImageSource(const ClassFolders& part, const ImageShape& shape, std::size_t threads,
              std::function<void(std::uint64_t bytes)> on_progress)
      : part_(part),
        shape_(shape),
        batch_images_(
            // A function of the shape alone, so the blocks do not depend on the number of threads.
            std::clamp<std::size_t>(kImageBlockBytes / shape.size(), 1, kMostBlockImages)),
        on_progress_(std::move(on_progress)),
        decoding_(threads),
        stops_(is_stopped_) {}

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept override {
    return columns_;
  }
  [[nodiscard]] const std::string& label_column() const noexcept override { return label_; }
  [[nodiscard]] std::optional<ImageShape> images() const noexcept override { return shape_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept override { return bytes_read_; }
  [[nodiscard]] std::uint64_t converted_bytes() const noexcept override {
    return part_.files.size() * shape_.size();
  }
  [[nodiscard]] bool next(RowBlock& block) override {
    // Keeps all threads busy before it waits for the oldest result.
    while (!decoding_.is_full() && next_ < part_.files.size()) {
      const Batch batch = {.part = &part_,
                           .begin = next_,
                           .end = std::min(next_ + batch_images_, part_.files.size())};
      next_ = batch.end;
      decoding_.begin([this, batch] { return decoded(batch, shape_, is_stopped_); });
    }
    if (decoding_.is_empty()) {
      return false;
    }
    // on_progress may throw; the destructors then stop the threads, in the order of the members.
    DecodedBatch result = decoding_.next([this] {
      if (on_progress_) on_progress_(bytes_read_);
    });
    bytes_read_ += result.bytes;
    block = std::move(result.block);
    return true;
  }

 private:
  const ClassFolders& part_;
  const ImageShape shape_;
  const std::size_t batch_images_;
  const std::vector<std::string> columns_;
  const std::string label_ = "class";
  const std::function<void(std::uint64_t bytes)> on_progress_;
  std::size_t next_ = 0;  // file
  std::uint64_t bytes_read_ = 0;
  std::atomic<bool> is_stopped_ = false;
  InOrder<DecodedBatch> decoding_;  // uses the members above
  StopsWork stops_;                 // declared after decoding_, so it is destroyed first
};

}  // namespace

// Only a train folder defines parts; without one every folder is a class.
std::vector<ClassFolders> class_folders_in(const Path& directory) {
  const Lister lister(directory);
  const std::vector<Path> folders = lister.list(directory).folders;
  std::vector<ClassFolders> parts;
  // A folder named train that contains images directly is a class.
  const auto is_part = [&lister](const Path& folder) {
    return part_called(folder) && !has_images_in(lister, folder);
  };
  const auto train = std::ranges::find_if(folders, [&](const Path& folder) {
    return part_called(folder) == Part::kTrain && is_part(folder);
  });
  if (train == folders.end()) {
    if (std::ranges::any_of(folders,
                            [&](const Path& folder) { return has_images_in(lister, folder); })) {
      parts.push_back(folders_of_part(lister, directory, std::nullopt));
    }
    return parts;
  }
  for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
    const std::size_t before = parts.size();
    for (const Path& folder : folders) {
      if (part_called(folder) != part || !is_part(folder)) continue;
      // val and validation, for example, are two words for one part.
      if (parts.size() > before) {
        throw UnusableData("--data: " + directory.string() + " has both " +
                           parts.back().path.filename().string() + " and " +
                           folder.filename().string() + "; one of them is allowed");
      }
      parts.push_back(folders_of_part(lister, folder, part));
    }
  }
  return parts;
}

ImageSet::ImageSet(std::vector<ClassFolders> parts, std::size_t threads)
    : parts_(std::move(parts)), threads_(threads) {}

ImageSet::~ImageSet() = default;

std::unique_ptr<RowSource> ImageSet::open(
    std::size_t part, const std::function<void(std::uint64_t bytes)>& on_progress) {
  // All parts share one shape, which the first part that is opened finds.
  if (!shape_) {
    find_shape(on_progress);
  }
  return std::make_unique<ImageSource>(parts_.at(part), *shape_, threads_, on_progress);
}

void ImageSet::find_shape(const std::function<void(std::uint64_t bytes)>& on_progress) {
  std::vector<Batch> batches;
  // All parts are checked before the first is converted, because an image of another size or with
  // colours changes the shape of all.
  for (const ClassFolders& part : parts_) {
    for (std::size_t begin = 0; begin < part.files.size(); begin += kMostBlockImages) {
      batches.push_back({.part = &part,
                         .begin = begin,
                         .end = std::min(begin + kMostBlockImages, part.files.size())});
    }
  }
  std::atomic<bool> is_stopped = false;
  // In order, so that of several wrong images the same one is reported in each run.
  InOrder<BatchSizes> looking(threads_);
  const StopsWork stops(is_stopped);
  std::optional<FoundSize> first;
  bool has_colours = false;
  std::uint64_t bytes = 0;
  for (std::size_t next = 0; next < batches.size() || !looking.is_empty();) {
    while (!looking.is_full() && next < batches.size()) {
      looking.begin([batch = batches[next], &is_stopped] { return sizes_of(batch, is_stopped); });
      ++next;
    }
    const BatchSizes sizes = looking.next([&] {
      if (on_progress) on_progress(bytes);
    });
    first = first.value_or(sizes.first);
    require_same(*first, sizes.first);
    has_colours = has_colours || sizes.has_colours;
    bytes += sizes.bytes;
    if (on_progress) {
      on_progress(bytes);
    }
  }
  // One colour image makes every image three channels, because all must have the same shape.
  shape_ = {.height = first->size.height,
            .width = first->size.width,
            .channels = has_colours ? std::size_t{3} : std::size_t{1}};
}

}  // namespace disttf::data
