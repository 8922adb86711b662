// The ways in which the bytes of a data set can be wrong, one code per cause. The caller, which has
// the file's name, adds it together with the expected and the actual value.
#pragma once

#include <string>
#include <system_error>

namespace disttf::data {

enum class DataError {
  kNotGzip = 1,            // no gzip header at the start
  kGzipTruncated,          // the bytes end before the member does
  kGzipCorrupt,            // invalid deflate data, or wrong CRC-32 or size
  kGzipTrailingBytes,      // more bytes after the member, including a second member
  kGzipTooLarge,           // the output exceeds the caller's limit
  kIdxTruncated,           // shorter than its header says, or than a header
  kIdxBadMagic,            // does not start with two zero bytes
  kIdxBadType,             // elements are not unsigned bytes
  kIdxBadShape,            // the number of dimensions or a size is not what the caller needs
  kIdxTrailingBytes,       // longer than its header says
  kBadLabel,               // a label outside the classes
  kWrongSize,              // the file has another size than the required one
  kWrongChecksum,          // the file's SHA-256 is not the required one
  kNotVerified,            // only a checksum marker could verify the file, and it does not match
  kNotRegularFile,         // a pipe, a socket or a device instead of a file
  kSafetensorsTruncated,   // shorter than its header says, or than a header
  kSafetensorsBadHeader,   // the header is too long or not the required JSON
  kSafetensorsBadType,     // a tensor of a type other than float32
  kSafetensorsBadOffsets,  // tensors overlap, leave gaps or do not match their shapes
  kNotZip,                 // no zip directory at the end
  kZipCorrupt,             // the directory, or a member's data, CRC-32 or size is wrong
  kZipNoMember,            // no member has the requested name
  kZipBadMethod,           // a member is encrypted, or compressed with a method other than deflate
  kZipTooLarge,            // a member exceeds the caller's limit
  kTarTruncated,           // the bytes end before the archive does
  kTarBadHeader,           // a header with a wrong sum or an invalid size
  kTarNoMember,            // no member has the requested name
  kBadRecords,             // not a whole number of records
};

[[nodiscard]] const std::error_category& data_category() noexcept;
[[nodiscard]] std::error_code make_error_code(DataError error) noexcept;

// Formats the detail of an error: "expected a header of at least 8 bytes, found 3 bytes".
[[nodiscard]] std::string sentence(const std::string& expected, const std::string& found);

}  // namespace disttf::data

template <>
struct std::is_error_code_enum<disttf::data::DataError> : std::true_type {};
