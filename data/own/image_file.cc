#include "data/own/image_file.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include "data/own/row_source.h"
#include "data/own/shown_text.h"

// jpeglib.h needs FILE to be declared, and jerror.h needs jpeglib.h.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace disttf::data {
namespace {

// Both libraries leave a decoder with longjmp, which runs no destructors. Between a setjmp and a
// possible longjmp there are therefore only trivial values and functions that pass on what they
// find.
// NOLINTBEGIN(cert-err52-cpp)

constexpr std::size_t kMostMessage = 200;
constexpr png_uint_32 kMostSide = 65'500;  // libjpeg's limit
constexpr std::array<std::uint8_t, 4> kPngSignature = {0x89, 'P', 'N', 'G'};
constexpr std::array<std::uint8_t, 3> kJpegSignature = {0xFF, 0xD8, 0xFF};

[[noreturn]] void refuse_image(const std::string& where, const std::string& sentence) {
  throw UnusableData(where + ": " + sentence);
}

bool is_set(const std::atomic<bool>* flag) noexcept {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

constexpr const char* kStopped = "decoding was stopped";

void check_size(const ImageSize& size, const std::string& where) {
  // By division, so that the product of two large sides cannot overflow.
  constexpr std::size_t kColours = 3;
  if (size.height == 0 || size.width == 0 ||
      size.height > kMostImageBytes / kColours / size.width) {
    refuse_image(where, "it has " + std::to_string(size.height) + "x" + std::to_string(size.width) +
                            " pixels; at most " + std::to_string(kMostImageBytes >> 20U) +
                            " MiB of them, with three bytes each, are allowed");
  }
}

// PNG ----------------------------------------------------------------------------------------

struct PngState {
  PngState() = default;
  // Runs when a reader is destroyed, never by longjmp: the functions with setjmp do not own the
  // state.
  ~PngState() { png_destroy_read_struct(&png, &info, nullptr); }
  PngState(const PngState&) = delete;
  PngState& operator=(const PngState&) = delete;

  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* rest = nullptr;
  std::size_t rest_bytes = 0;
  bool is_last_row = false;   // the row being read
  bool has_last_row = false;  // its bytes have been inflated
  std::array<char, kMostMessage> message{};
};

// Results of setjmp().
constexpr int kFailed = 1;
constexpr int kHasAllRows = 2;

extern "C" void disttf_png_error(png_structp png, png_const_charp message) {
  auto* const state = static_cast<PngState*>(png_get_error_ptr(png));
  // Into a fixed buffer: std::string could allocate, and longjmp would leak it.
  std::snprintf(state->message.data(), state->message.size(), "%s", message);
  png_longjmp(png, kFailed);
}
extern "C" void disttf_png_warning(png_structp /*png*/, png_const_charp /*message*/) {}
extern "C" void disttf_png_read(png_structp png, png_bytep to, png_size_t count) {
  auto* const state = static_cast<PngState*>(png_get_io_ptr(png));
  // After the last row libpng would inflate all remaining data, which has no limit.
  if (state->is_last_row && state->has_last_row) png_longjmp(png, kHasAllRows);
  // png_error() does not return.
  if (count > state->rest_bytes) png_error(png, "the file ends too early");
  std::memcpy(to, state->rest, count);
  state->rest += count;
  state->rest_bytes -= count;
}

// libpng calls this for each row, after inflation and before the row reaches the caller.
extern "C" void disttf_png_row(png_structp png, png_row_infop /*row*/, png_bytep /*bytes*/) {
  static_cast<PngState*>(png_get_io_ptr(png))->has_last_row = true;
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) noexcept {
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U |
         std::uint32_t{bytes[2]} << 8U | std::uint32_t{bytes[3]};
}

// Returns why the file is broken according to its chunks, or null. The file must end with IEND, and
// critical chunks must have the right checksums. libpng does not reach the chunks after the last
// row (disttf_png_read), so they are checked here.
const char* broken_chunk(std::span<const std::uint8_t> file) {
  constexpr std::size_t kSignatureBytes = 8;
  constexpr std::size_t kAround = 12;  // length, name and checksum
  constexpr std::size_t kNameBytes = 4;
  constexpr std::uint8_t kAncillary = 0x20;  // bit of the first letter of a chunk's name
  for (auto rest = file.subspan(std::min(file.size(), kSignatureBytes));;) {
    if (rest.size() < kAround || big_endian(rest) > rest.size() - kAround) {
      return "the file ends too early";
    }
    const std::size_t length = big_endian(rest);
    const auto named = rest.subspan(kNameBytes, kNameBytes + length);
    if ((named[0] & kAncillary) == 0 &&
        crc32_z(0, named.data(), named.size()) != big_endian(rest.subspan(length + 8))) {
      return "a chunk has a wrong checksum (CRC)";
    }
    if (std::memcmp(named.data(), "IEND", kNameBytes) == 0) return nullptr;
    rest = rest.subspan(length + kAround);
  }
}

// Returns false with the reason in state.message.
bool read_png_header(PngState& state, ImageSize& size) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  png_set_read_fn(state.png, &state, &disttf_png_read);
  // Before any allocation that depends on the size that the file declares.
  png_set_user_limits(state.png, kMostSide, kMostSide);
  png_set_chunk_malloc_max(state.png, std::size_t{8} << 20U);
  // Text, profiles and times do not affect the pixels, and a thousand of them could inflate to 8
  // MiB each. Only transparency is needed.
  png_set_keep_unknown_chunks(state.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_chunk_cache_max(state.png, 16);
  png_read_info(state.png, state.info);
  const auto colours = png_get_color_type(state.png, state.info);
  size.height = png_get_image_height(state.png, state.info);
  size.width = png_get_image_width(state.png, state.info);
  size.is_grey = colours == PNG_COLOR_TYPE_GRAY || colours == PNG_COLOR_TYPE_GRAY_ALPHA;
  return true;
}

// Decodes the rows; the header has been read.
bool read_png_pixels(PngState& state, const ImageSize& size, std::size_t channels,
                     std::uint8_t* pixels, const std::atomic<bool>* is_stopped) {
  // libpng inflates each read completely, so a small read limits the output to half a megabyte.
  constexpr std::size_t kPngReadBytes = 512;
  // A setjmp of its own: that of the header's function is invalid once the function has returned.
  switch (setjmp(png_jmpbuf(state.png))) {
    case 0:
      break;
    case kHasAllRows:
      return true;
    default:
      return false;
  }
  png_set_compression_buffer_size(state.png, kPngReadBytes);
  png_set_read_user_transform_fn(state.png, &disttf_png_row);
  png_set_expand(state.png);  // palettes, 1 to 4 bits, a transparent colour
  // Every format becomes 8 bits a channel without transparency, the form of a row of pixels.
  png_set_scale_16(state.png);
  png_set_strip_alpha(state.png);
  if (size.is_grey && channels == 3) png_set_gray_to_rgb(state.png);
  const int passes = png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  // libpng writes rows of this length into `pixels`, so a different one would write past their end.
  if (png_get_rowbytes(state.png, state.info) != size.width * channels) {
    png_error(state.png, "its colour type is not supported");
  }
  // Each pass of an interlaced image adds pixels to the rows that the passes before it have
  // written.
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t y = 0; y < size.height; ++y) {
      if (is_set(is_stopped)) png_error(state.png, kStopped);
      state.is_last_row = pass + 1 == passes && y + 1 == size.height;
      // The last pass of an interlaced image contains only odd rows.
      state.has_last_row = passes > 1 && y % 2 == 0;
      png_read_row(state.png, pixels + y * size.width * channels, nullptr);
    }
  }
  return true;
}

class PngReader {
 public:
  PngReader(std::span<const std::uint8_t> file, const std::string& where)
      : where_(where), file_(file) {
    state_.rest = file.data();
    state_.rest_bytes = file.size();
    state_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, &disttf_png_error,
                                        &disttf_png_warning);
    state_.info = state_.png == nullptr ? nullptr : png_create_info_struct(state_.png);
    if (state_.info == nullptr) throw std::bad_alloc();
    if (!read_png_header(state_, size_)) fail();
    check_size(size_, where);
  }
  [[nodiscard]] const ImageSize& size() const noexcept { return size_; }
  void decode(std::size_t channels, std::span<std::uint8_t> pixels,
              const std::atomic<bool>* is_stopped) {
    if (const char* const broken = broken_chunk(file_)) {
      std::snprintf(state_.message.data(), state_.message.size(), "%s", broken);
      fail();
    }
    if (!read_png_pixels(state_, size_, channels, pixels.data(), is_stopped)) fail();
  }

 private:
  [[noreturn]] void fail() {
    refuse_image(where_, "it is a broken PNG image: " + printable(state_.message.data()));
  }
  const std::string& where_;
  std::span<const std::uint8_t> file_;
  PngState state_;
  ImageSize size_;
};

// JPEG ---------------------------------------------------------------------------------------

struct JpegState {
  JpegState() = default;
  ~JpegState() { jpeg_destroy_decompress(&jpeg); }  // no effect if it was never created
  JpegState(const JpegState&) = delete;
  JpegState& operator=(const JpegState&) = delete;

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  const std::atomic<bool>* is_stopped = nullptr;
  std::jmp_buf failed{};
  std::array<char, std::max<std::size_t>(kMostMessage, JMSG_LENGTH_MAX)> message{};
};

JpegState& state_of(j_common_ptr jpeg) { return *static_cast<JpegState*>(jpeg->client_data); }

extern "C" void disttf_jpeg_error(j_common_ptr jpeg) {
  JpegState& state = state_of(jpeg);
  state.errors.format_message(jpeg, state.message.data());
  std::longjmp(state.failed, 1);
}
// Most warnings are harmless, but missing pixels, which would become grey, are an error.
extern "C" void disttf_jpeg_warning(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) disttf_jpeg_error(jpeg);
}
extern "C" void disttf_jpeg_output(j_common_ptr /*jpeg*/) {}
// A progressive image may have any number of scans, each over the whole image, which would take
// unbounded time. Real encoders write about ten.
extern "C" void disttf_jpeg_progress(j_common_ptr jpeg) {
  constexpr int kMostScans = 100;
  JpegState& state = state_of(jpeg);
  if (is_set(state.is_stopped)) {
    std::snprintf(state.message.data(), state.message.size(), "%s", kStopped);
    std::longjmp(state.failed, 1);
  }
  if (state.jpeg.input_scan_number > kMostScans) {
    std::snprintf(state.message.data(), state.message.size(), "it has more than %d scans",
                  kMostScans);
    std::longjmp(state.failed, 1);
  }
}

bool read_jpeg_header(JpegState& state, std::span<const std::uint8_t> file) {
  if (setjmp(state.failed) != 0) return false;
  // It clears the structure, so what the decoder needs beside the error handler is set afterwards.
  jpeg_create_decompress(&state.jpeg);
  state.jpeg.client_data = &state;
  state.jpeg.progress = &state.progress;
  jpeg_mem_src(&state.jpeg, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&state.jpeg, TRUE);
  return true;
}

// Decodes the rows; the header has been read.
bool read_jpeg_pixels(JpegState& state, std::size_t channels, std::uint8_t* pixels) {
  if (setjmp(state.failed) != 0) return false;
  // libjpeg converts grey images to RGB itself if other images of the set have colours.
  state.jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&state.jpeg);
  while (state.jpeg.output_scanline < state.jpeg.output_height) {
    JSAMPROW row =
        pixels + std::size_t{state.jpeg.output_scanline} * state.jpeg.output_width * channels;
    jpeg_read_scanlines(&state.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&state.jpeg);
  return true;
}

class JpegReader {
 public:
  JpegReader(std::span<const std::uint8_t> file, const std::string& where) : where_(where) {
    state_.jpeg.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = &disttf_jpeg_error;
    state_.errors.emit_message = &disttf_jpeg_warning;
    state_.errors.output_message = &disttf_jpeg_output;
    state_.progress.progress_monitor = &disttf_jpeg_progress;
    state_.jpeg.client_data = &state_;
    if (!read_jpeg_header(state_, file)) fail();
    size_ = {.height = state_.jpeg.image_height,
             .width = state_.jpeg.image_width,
             .is_grey = state_.jpeg.num_components == 1};
    check_size(size_, where);
    // Four components are CMYK, which has no conversion to RGB without a colour profile.
    if (state_.jpeg.num_components != 1 && state_.jpeg.num_components != 3) {
      refuse_image(where, "it has " + std::to_string(state_.jpeg.num_components) +
                              " colours (for print); only grey and RGB are supported");
    }
  }

  [[nodiscard]] const ImageSize& size() const noexcept { return size_; }
  void decode(std::size_t channels, std::span<std::uint8_t> pixels,
              const std::atomic<bool>* is_stopped) {
    state_.is_stopped = is_stopped;
    if (!read_jpeg_pixels(state_, channels, pixels.data())) fail();
  }

 private:
  [[noreturn]] void fail() {
    refuse_image(where_, "it is a broken JPEG image: " + printable(state_.message.data()));
  }
  const std::string& where_;
  JpegState state_;
  ImageSize size_;
};

// NOLINTEND(cert-err52-cpp)

// Calls `use` with the reader for the file's format.
template <typename Use>
auto with_reader(std::span<const std::uint8_t> file, const std::string& where, Use use) {
  const auto begins_with = [file](const auto& signature) {
    return file.size() >= signature.size() &&
           std::ranges::equal(file.first(signature.size()), signature);
  };
  if (begins_with(kPngSignature)) {
    PngReader reader(file, where);
    return use(reader);
  }
  if (!begins_with(kJpegSignature)) {
    refuse_image(where, "it is neither a PNG nor a JPEG image");
  }
  JpegReader reader(file, where);
  return use(reader);
}

}  // namespace

ImageSize image_size(std::span<const std::uint8_t> file, const std::string& where) {
  return with_reader(file, where, [](const auto& reader) { return reader.size(); });
}

void decode_image(std::span<const std::uint8_t> file, const std::string& where,
                  std::size_t channels, std::span<std::uint8_t> pixels,
                  const std::atomic<bool>* is_stopped) {
  with_reader(file, where, [&](auto& reader) {
    const ImageSize& size = reader.size();
    // The shape was found in an earlier pass, and the file can have been replaced since then.
    if (size.height * size.width * channels != pixels.size() || (!size.is_grey && channels != 3)) {
      refuse_image(where, "it was changed while it was read");
    }
    reader.decode(channels, pixels, is_stopped);
  });
}

}  // namespace disttf::data
