// A folder of PNG and JPEG images by class:
//
//  train/CLASS/*.png, test/CLASS/*.png and optionally validation/CLASS/*.png (val, valid);
//   or CLASS/*.png alone, whose images are split among the parts
//
// The folder's name is the class. Images have the same size; they are grey if all of them are,
// otherwise RGB (image_file.h describes the conversion). Names that begin with a point and files
// that are not images are ignored, and so is everything beside train. Symbolic links may lead only
// to files inside the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/own/hold_out.h"
#include "data/own/row_source.h"

namespace disttf::data {

// The files of one part, by class, then by name.
struct ClassFolders {
  std::filesystem::path path;
  std::optional<Part> part;  // none: they are split among the parts
  std::vector<std::string> classes;
  std::vector<std::filesystem::path> files;
  std::vector<std::uint32_t> labels;  // [files]: indices in `classes`
  std::uint64_t bytes = 0;            // of all files
  std::string fingerprint;            // changes when a file changes
};

// Returns the parts, training first; empty if the folder contains no folder with images. Throws
// UnusableData, and std::system_error if something cannot be read.
[[nodiscard]] std::vector<ClassFolders> class_folders_in(const std::filesystem::path& directory);

// All parts of a set. Not thread-safe.
class ImageSet {
 public:
  ImageSet(std::vector<ClassFolders> parts, std::size_t threads);
  ~ImageSet();
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  [[nodiscard]] const std::vector<ClassFolders>& parts() const noexcept { return parts_; }
  // Returns the images of parts()[part], decoded by several threads; the source must not outlive
  // this object. The first call reads the headers of all parts' files to find their shape.
  // `on_progress` is called then, and while the source waits for images, with the number of bytes
  // read. It may throw, which ends the work within a few rows of an image. Throws UnusableData, and
  // std::system_error if a file cannot be read.
  [[nodiscard]] std::unique_ptr<RowSource> open(
      std::size_t part, const std::function<void(std::uint64_t bytes)>& on_progress);

 private:
  void find_shape(const std::function<void(std::uint64_t bytes)>& on_progress);

  const std::vector<ClassFolders> parts_;
  const std::size_t threads_;
  std::optional<ImageShape> shape_;
};

}  // namespace disttf::data
