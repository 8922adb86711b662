#include "data/own/idx_folder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/checksums.h"
#include "data/error.h"
#include "data/file.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/own/lower_case.h"
#include "data/own/row_source.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;
using Bytes = std::vector<std::uint8_t>;

// The limit for a file that is read into memory, compressed or not.
constexpr std::size_t kMostFileBytes = std::size_t{16} << 30U;
constexpr std::string_view kZipped = ".gz";

// Returns which of the four files this is, such as "train images", or an empty string. Only whole
// words count: latest-train-images-idx3-ubyte does not belong to the test part.
std::string kind_of(const std::string& file_name) {
  const std::string small = lower_case(file_name);
  std::string_view name = small;
  if (name.ends_with(kZipped)) {
    name.remove_suffix(kZipped.size());
  }
  const auto has = [name](std::string_view word) {
    constexpr std::string_view kBetween = "-_. ";
    for (std::size_t at = name.find(word); at != std::string_view::npos;
         at = name.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || kBetween.find(name[at - 1]) != std::string_view::npos) &&
          (end == name.size() || kBetween.find(name[end]) != std::string_view::npos)) {
        return true;
      }
    }
    return false;
  };
  const bool is_images =
      has("images") && (name.ends_with("idx3-ubyte") || name.ends_with("idx4-ubyte"));
  const bool is_labels = has("labels") && name.ends_with("idx1-ubyte");
  const bool is_test = has("test") || has("t10k");
  // Both or neither of two words leave the kind open, so such a file is not one of the four.
  if (is_images == is_labels || is_test == has("train")) {
    return {};
  }
  return std::string(is_test ? "test" : "train") + (is_images ? " images" : " labels");
}

// Returns the files by kind, preferring an extracted file to its .gz.
std::map<std::string, Path> files_in(const Path& directory) {
  std::map<std::string, Path> found;
  std::error_code error;
  std::vector<Path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    paths.push_back(entry.path());
  }
  if (error) throw std::system_error(error, "--data: cannot read " + directory.string());
  std::ranges::sort(paths);  // a file precedes its .gz
  for (const Path& path : paths) {
    const std::string kind = kind_of(path.filename().string());
    if (kind.empty()) continue;
    const auto [place, is_new] = found.try_emplace(kind, path);
    // A second file of a kind is accepted only if it is the .gz of the first, which then stays
    // unused.
    if (!is_new &&
        lower_case(path.string()) != lower_case(place->second.string()) + std::string(kZipped)) {
      throw UnusableData("--data: " + directory.string() + " has two files of the " + kind + ", " +
                         place->second.filename().string() + " and " + path.filename().string() +
                         "; of two data sets, move one to a folder of its own");
    }
  }
  return found;
}

// A few bytes can inflate to any size, so inflation stops at the size that the IDX header declares.
Bytes extracted(const Bytes& compressed, const Path& path, const std::function<void()>& on_block) {
  Bytes bytes;
  std::span<const std::uint8_t> rest = compressed;
  const std::error_code error = gunzip_pieces(
      // The whole input as one piece; the second call returns nothing, which means the end.
      [&rest] { return std::exchange(rest, {}); },
      [&](std::span<const std::uint8_t> piece) {
        if (on_block) on_block();
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        // The size is unknown until the header is complete; the limit of a piece bounds the memory
        // until then.
        const std::uint64_t most = std::min<std::uint64_t>(idx_file_bytes(bytes), kMostFileBytes);
        return bytes.size() > most ? make_error_code(DataError::kIdxTrailingBytes)
                                   : std::error_code{};
      });
  // A wrong header is left to the parser, which has the better error message.
  if (error && !bytes.empty() && idx_file_bytes(bytes) == 0) return bytes;
  if (error) throw UnusableData(path.string() + ": " + error.message());
  return bytes;
}

Bytes contents_of(const Path& path, const std::function<void()>& on_block) {
  Bytes bytes = read_file(path, kMostFileBytes);
  if (on_block) on_block();
  return lower_case(path.extension().string()) == kZipped ? extracted(bytes, path, on_block)
                                                          : std::move(bytes);
}

// One of the two parts that have files.
struct Images {
  Bytes image_bytes;
  Bytes label_bytes;
  ImageShape shape;
  std::span<const std::uint8_t> images;  // view of image_bytes
  std::span<const std::uint8_t> labels;
};

IdxView parsed(const Bytes& bytes, const Path& path) {
  IdxView view;
  std::string detail;
  if (const std::error_code error = parse_idx(bytes, view, detail)) {
    throw UnusableData(path.string() + ": " + detail + ": " + error.message());
  }
  return view;
}

Images read_part(const std::map<std::string, Path>& files, const std::string& part,
                 const Path& directory, const std::function<void()>& on_block) {
  const auto path_of = [&](const std::string& kind) -> const Path& {
    const auto found = files.find(part + kind);
    if (found == files.end()) {
      throw UnusableData("--data: " + directory.string() + " has no IDX file of the " + part +
                         kind);
    }
    return found->second;
  };
  const Path& images_path = path_of(" images");
  const Path& labels_path = path_of(" labels");
  Images result;
  result.image_bytes = contents_of(images_path, on_block);
  result.label_bytes = contents_of(labels_path, on_block);
  const IdxView images = parsed(result.image_bytes, images_path);
  const IdxView labels = parsed(result.label_bytes, labels_path);
  if (images.dimensions < 3 || labels.dimensions != 1) {
    throw UnusableData(
        (images.dimensions < 3 ? images_path : labels_path).string() + ": it has " +
        std::to_string(images.dimensions < 3 ? images.dimensions : labels.dimensions) +
        " dimensions; images have 3 or 4, labels 1");
  }
  if (images.sizes[0] != labels.sizes[0] || images.sizes[0] == 0) {
    throw UnusableData(images_path.string() + " has " + std::to_string(images.sizes[0]) +
                       " images, " + labels_path.string() + " has " +
                       std::to_string(labels.sizes[0]) +
                       " labels; as many are expected, and one "
                       "at least");
  }
  result.shape = {.height = images.sizes[1],
                  .width = images.sizes[2],
                  .channels = images.dimensions == 4 ? images.sizes[3] : 1};
  if (result.shape.size() == 0) {
    throw UnusableData(images_path.string() + ": its images have no pixels");
  }
  result.images = images.elements;
  result.labels = labels.elements;
  return result;
}

// The memory that the splits refer to.
struct Storage {
  std::array<Bytes, kParts> images;
  std::array<Bytes, kParts> labels;
  std::vector<std::string> names;  // class names, unless they are 0, 1, 2, ...
  std::vector<std::string_view> views;
};

// Renumbers the labels that occur to 0, 1, 2, ... Returns their number.
std::size_t number_classes(Storage& storage) {
  constexpr std::size_t kMost = 256;
  std::array<bool, kMost> occurs{};
  for (const Bytes& labels : storage.labels) {
    for (const std::uint8_t label : labels) occurs.at(label) = true;
  }
  std::array<std::uint8_t, kMost> places{};
  std::size_t classes = 0;
  for (std::size_t label = 0; label < kMost; ++label) {
    if (!occurs.at(label)) continue;
    places.at(label) = static_cast<std::uint8_t>(classes++);
    storage.names.push_back(std::to_string(label));
  }
  // The labels are 0, 1, 2, ... without a gap: they are class indices already and need no names.
  if (storage.names.back() == std::to_string(classes - 1)) {
    storage.names.clear();
    return classes;
  }
  for (Bytes& labels : storage.labels) {
    for (std::uint8_t& label : labels) label = places.at(label);
  }
  storage.views.assign(storage.names.begin(), storage.names.end());
  return classes;
}

// If no test label occurs in training, the files belong to different data sets and every answer
// would be wrong.
void check_test_labels(const Storage& storage, const Path& directory) {
  std::array<bool, 256> trained{};
  for (const std::uint8_t label : storage.labels[0]) trained.at(label) = true;
  if (std::ranges::none_of(storage.labels[2],
                           [&trained](std::uint8_t label) { return trained.at(label); })) {
    throw UnusableData("--data: " + directory.string() +
                       ": no label for test occurs among the training labels; both need the same "
                       "classes");
  }
}

// Copies each row to its part.
void share_out(const Images& from, HoldOut& hold_out, Storage& to) {
  const std::size_t size = from.shape.size();
  to.images[0].reserve(from.images.size());
  for (std::size_t row = 0; row < from.labels.size(); ++row) {
    const Part drawn = hold_out.part_of(row);
    // The folder has its own test files, so a row that is drawn for the test stays in training.
    const auto part = static_cast<std::size_t>(drawn == Part::kTest ? Part::kTrain : drawn);
    const auto image = from.images.subspan(row * size, size);
    to.images[part].insert(to.images[part].end(), image.begin(), image.end());
    to.labels[part].push_back(from.labels[row]);
  }
}

}  // namespace

bool has_idx_files(const Path& directory) { return !files_in(directory).empty(); }

Dataset open_idx_folder(const Path& directory, std::string name, HoldOut hold_out,
                        const std::function<void()>& on_block) {
  const std::map<std::string, Path> files = files_in(directory);
  auto storage = std::make_shared<Storage>();
  Images train = read_part(files, "train", directory, on_block);
  const Images test = read_part(files, "test", directory, on_block);
  if (test.shape != train.shape) {
    const auto text = [](const ImageShape& shape) {
      return std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x" +
             std::to_string(shape.channels);
    };
    throw UnusableData("--data: " + directory.string() + ": images of " + text(train.shape) +
                       " to train on, and of " + text(test.shape) + " for the test");
  }
  share_out(train, hold_out, *storage);
  storage->images[2].assign(test.images.begin(), test.images.end());
  storage->labels[2].assign(test.labels.begin(), test.labels.end());
  const ImageShape shape = train.shape;
  // Releases the files' memory before the hash: the rows have been copied.
  train = {};
  Dataset dataset;
  dataset.name = std::move(name);
  dataset.shape = shape;
  const std::array<Split*, kParts> splits = {&dataset.train, &dataset.validation, &dataset.test};
  Sha256 sum;
  check_test_labels(*storage, directory);
  dataset.classes = number_classes(*storage);
  dataset.class_names = storage->views;
  // The checksum covers the names, because labels that were renumbered alone do not say which
  // classes they are.
  for (const std::string& class_name : storage->names) {
    sum.update(std::as_bytes(std::span(class_name)));
    sum.update(std::as_bytes(std::span("\n", 1)));
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    *splits[part] = {.images = storage->images[part], .labels = storage->labels[part]};
    if (splits[part]->labels.empty()) {
      throw UnusableData("--data: " + directory.string() + " has no images for " +
                         part_name(static_cast<Part>(part)) +
                         "; more of them, or a larger share in --hold_out, are needed");
    }
    sum.update(std::as_bytes(splits[part]->images));
    sum.update(std::as_bytes(splits[part]->labels));
  }
  if (dataset.classes < 2) {
    throw UnusableData("--data: " + directory.string() + ": all labels are " +
                       (storage->names.empty() ? "0" : storage->names.front()) +
                       "; two classes at least are needed");
  }
  dataset.checksum = sum.hex();
  dataset.storage = std::move(storage);
  return dataset;
}

}  // namespace disttf::data
