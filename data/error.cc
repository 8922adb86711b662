#include "data/error.h"

#include <string>

namespace disttf::data {
namespace {

class DataCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "disttf.data"; }

  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<DataError>(value)) {
      case DataError::kNotGzip:
        return "not a gzip file";
      case DataError::kGzipTruncated:
        return "the gzip file is truncated";
      case DataError::kGzipCorrupt:
        return "the gzip file is corrupt";
      case DataError::kGzipTrailingBytes:
        return "bytes follow the end of the gzip member";
      case DataError::kGzipTooLarge:
        return "the gzip file expands to more than the limit";
      case DataError::kIdxTruncated:
        return "the IDX file is shorter than its header says";
      case DataError::kIdxBadMagic:
        return "not an IDX file";
      case DataError::kIdxBadType:
        return "the IDX file does not hold unsigned bytes";
      case DataError::kIdxBadShape:
        return "the IDX file has the wrong shape";
      case DataError::kIdxTrailingBytes:
        return "the IDX file is longer than its header says";
      case DataError::kBadLabel:
        return "a label is not one of the classes";
      case DataError::kWrongSize:
        return "wrong size";
      case DataError::kWrongChecksum:
        return "wrong checksum";
      case DataError::kNotVerified:
        return "its contents cannot be verified";
      case DataError::kNotRegularFile:
        return "not a regular file";
      case DataError::kSafetensorsTruncated:
        return "the safetensors file is truncated";
      case DataError::kSafetensorsBadHeader:
        return "not a safetensors file, or its header is damaged";
      case DataError::kSafetensorsBadType:
        return "the safetensors file has a tensor that is not float32";
      case DataError::kSafetensorsBadOffsets:
        return "the tensors of the safetensors file do not fill it exactly";
      case DataError::kNotZip:
        return "not a zip file";
      case DataError::kZipCorrupt:
        return "the zip file is corrupt";
      case DataError::kZipNoMember:
        return "the zip file has no such member";
      case DataError::kZipBadMethod:
        return "the member of the zip file is encrypted, or not compressed by deflate";
      case DataError::kZipTooLarge:
        return "the member of the zip file exceeds the size limit";
      case DataError::kTarTruncated:
        return "the tar archive is truncated";
      case DataError::kTarBadHeader:
        return "not a tar archive, or a header of it is damaged";
      case DataError::kTarNoMember:
        return "the tar archive has no such member";
      case DataError::kBadRecords:
        return "not a whole number of records";
    }
    // Outside of the switch, so that the compiler reports an error that has no case.
    return "unknown data error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& data_category() noexcept {
  // One object for the whole program: std::error_code compares categories by address.
  static const DataCategory category;
  return category;
}

std::error_code make_error_code(DataError error) noexcept {
  return {static_cast<int>(error), data_category()};
}

std::string sentence(const std::string& expected, const std::string& found) {
  return "expected " + expected + ", found " + found;
}

}  // namespace disttf::data
