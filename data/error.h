// What can be wrong with bytes that somebody hands us as a data set. One code a cause; the
// sentence with file, expected and actual is made by whoever knows the file.
#pragma once

#include <string>
#include <system_error>

namespace disttf::data {

enum class DataError {
  kNotGzip = 1,           // no gzip header at the start
  kGzipTruncated,         // the bytes end before the member does
  kGzipCorrupt,           // invalid deflate data, or CRC-32 or size do not fit what came out
  kGzipTrailingBytes,     // more bytes after the member, a second member included
  kGzipTooLarge,          // more comes out than the caller allows
  kIdxTruncated,          // shorter than its header says, or than a header
  kIdxBadMagic,           // does not start with two zero bytes
  kIdxBadType,            // elements are not unsigned bytes
  kIdxBadShape,           // number of dimensions or their sizes are not what the caller needs
  kIdxTrailingBytes,      // longer than its header says
  kBadLabel,              // a label that is none of the classes
  kWrongSize,             // a file that does not have the size it must have
  kWrongChecksum,         // a file whose SHA-256 is not the one it must have
  kNotVerified,           // a file whose contents only its stamp vouches for, and that does not fit
  kNotRegularFile,        // a pipe, a socket or a device where a file should be
  kSafetensorsTruncated,  // shorter than its header says, or than a header
  kSafetensorsBadHeader,  // the header is too long or not the JSON that it has to be
  kSafetensorsBadType,    // a tensor of another type than float32
  kSafetensorsBadOffsets,  // tensors overlap, leave bytes out or do not fit their shapes
  kNotZip,                 // no directory of a zip file at the end
  kZipCorrupt,             // the directory, or a member's data, CRC-32 or size do not fit
  kZipNoMember,            // there is none of the name that is looked for
  kZipBadMethod,           // a member is encrypted, or compressed otherwise than by deflate
  kZipTooLarge,            // a member has more than the caller allows
  kTarTruncated,           // the bytes end before the archive does
  kTarBadHeader,           // a header whose sum or size is none
  kTarNoMember,            // there is none of the name that is looked for
  kBadRecords,             // not a whole number of records
};

[[nodiscard]] const std::error_category& data_category() noexcept;
[[nodiscard]] std::error_code make_error_code(DataError error) noexcept;

// The form of all details: "expected a header of at least 8 bytes, found 3 bytes".
[[nodiscard]] std::string sentence(const std::string& expected, const std::string& found);

}  // namespace disttf::data

template <>
struct std::is_error_code_enum<disttf::data::DataError> : std::true_type {};
