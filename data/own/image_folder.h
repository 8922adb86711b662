// A folder of images by class, PNG and JPEG:
//
//   train/CLASS/*.png, test/CLASS/*.png and, if there is one, validation/CLASS/*.png (val, valid)
//   or CLASS/*.png alone, whose images are shared out
//
// A class is called as its folder. Images have one size; they are grey where all of them are, else
// RGB (image_file.h says what becomes of other pixels). Names with a point in front and files that
// are no images are left alone, and so is what lies beside train. Symbolic links may lead to what
// is in the folder, and nowhere else.
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
  std::optional<Part> part;  // none: they are shared out
  std::vector<std::string> classes;
  std::vector<std::filesystem::path> files;
  std::vector<std::uint32_t> labels;  // [files]: places in `classes`
  std::uint64_t bytes = 0;            // of all files
  std::string stamp;                  // another one when a file has changed
};

// To train on first; none: there is no folder with images in the folder. Throws UnusableData, and
// std::system_error where something cannot be read.
[[nodiscard]] std::vector<ClassFolders> class_folders_in(const std::filesystem::path& directory);

// All parts of a set. Not thread-safe.
class ImageSet {
 public:
  ImageSet(std::vector<ClassFolders> parts, std::size_t threads);
  ~ImageSet();
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  [[nodiscard]] const std::vector<ClassFolders>& parts() const noexcept { return parts_; }
  // The images of parts()[part], decoded by several threads; lives no longer than this. The first
  // time the headers of all parts' files are read, which tell their shape. `on_progress` is called
  // then, and while the source waits for images, with the bytes that are read; it may throw, which
  // ends it within a few rows of an image. Throws UnusableData, and
  // std::system_error where a file cannot be read.
  [[nodiscard]] std::unique_ptr<RowSource> open(
      std::size_t part, const std::function<void(std::uint64_t bytes)>& on_progress);

 private:
  void find_shape(const std::function<void(std::uint64_t bytes)>& on_progress);

  const std::vector<ClassFolders> parts_;
  const std::size_t threads_;
  std::optional<ImageShape> shape_;
};

}  // namespace disttf::data
