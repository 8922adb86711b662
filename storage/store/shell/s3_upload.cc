#include "storage/store/shell/s3_upload.h"

#include <system_error>
#include <utility>

#include "net/http/http_status.h"
#include "run/process/log.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/core/store_error.h"
#include "storage/store/shell/s3_store.h"

namespace disttf::roles {
namespace {

// Escapes an entity tag, which is quoted, for XML.
std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

S3Upload::S3Upload(S3Store& store, std::string key)
    : store_(store), key_(std::move(key)), parts_([this](std::size_t number, auto bytes) {
        return store_
            .ask({.method = "PUT",
                  .key = key_,
                  .query = {{"partNumber", std::to_string(number)}, {"uploadId", id_}},
                  .body = bytes})
            .head.etag;
      }) {
  const net::HttpAnswer answer =
      store_.ask({.method = "POST", .key = key_, .query = {{"uploads", ""}}});
  id_ = xml_text(answer.body, "InitiateMultipartUploadResult/UploadId");
  if (id_.empty()) {
    throw std::system_error(StoreError::kBadAnswer, "the upload of " + key_ + " has no upload ID");
  }
}

S3Upload::~S3Upload() {
  // A part that arrives after the abort would stay in the store.
  parts_.wait();
  if (is_complete_) return;
  try {
    // The store keeps, and charges for, the parts of an upload until it is completed or aborted.
    static_cast<void>(store_.ask({.method = "DELETE",
                                  .key = key_,
                                  .query = {{"uploadId", id_}},
                                  .accepted = net::http_status::kNotFound}));
  } catch (const std::exception& error) {
    log_debug(std::string("cannot remove parts of an upload: ") + error.what());
  }
}

void S3Upload::complete() {
  // The tags prove to the store that the parts are those that were sent.
  const std::vector<std::string>& etags = parts_.finish();
  std::string list = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" +
            xml_escaped(etags[i]) + "</ETag></Part>";
  }
  list += "</CompleteMultipartUpload>";
  bool was_repeated = false;
  try {
    static_cast<void>(store_.ask({.method = "POST",
                                  .key = key_,
                                  .query = {{"uploadId", id_}},
                                  .body = std::as_bytes(std::span(list.data(), list.size())),
                                  .is_late = true,
                                  .work_bytes = parts_.bytes()},
                                 &was_repeated));
  } catch (const std::system_error& error) {
    // A retried request finds no upload if an earlier try without an answer has completed it.
    if (!was_repeated || error.code() != StoreError::kNotFound) throw;
    // Compares the size: the entity tag of an upload in parts is no hash of its bytes.
    const auto there = store_.find(key_);
    if (!there || there->size_bytes != parts_.bytes()) throw;
  }
  is_complete_ = true;
}

}  // namespace disttf::roles
