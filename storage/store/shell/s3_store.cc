#include "storage/store/shell/s3_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/core/store_error.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kMaxStoreAnswer = std::size_t{64} << 20U;  // a page of a listing has 1 MB

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return {};
}

// The metadata in the headers of an answer.
ObjectInfo info_from(const std::string& key, const net::HttpHead& head, std::uint64_t size) {
  return {.key = key,
          .size_bytes = size,
          .etag = head.etag,
          .modified = time_from_http(head.last_modified).value_or(std::chrono::sys_seconds{})};
}

}  // namespace

S3Store::S3Store(std::string bucket, const StoreEnvironment& environment)
    : bucket_(std::move(bucket)),
      profile_(read_profile(environment)),
      region_(
          first_of({environment.value_of("AWS_REGION"), environment.value_of("AWS_DEFAULT_REGION"),
                    setting_of(profile_, "region"), "us-east-1"})),
      credentials_(environment, region_, interrupt_),
      sessions_(environment.value_of("AWS_CA_BUNDLE"), environment.proxy, interrupt_) {
  const std::string endpoint =
      first_of({environment.value_of("AWS_ENDPOINT_URL_S3"),
                environment.value_of("AWS_ENDPOINT_URL"), setting_of(profile_, "endpoint_url")});
  // Amazon's host contains bucket and region; other stores take the bucket as a part of the path.
  if (endpoint.empty()) {
    // Dots in a bucket's name would add labels to the host, which the certificate does not cover.
    const bool is_host = bucket_.find_first_of("._") == std::string::npos;
    const std::string host = "https://" + (is_host ? bucket_ + "." : "") + "s3." + region_ +
                             ".amazonaws.com/" + (is_host ? "" : bucket_);
    base_ = net::parse_url("AWS_REGION", host);
  } else {
    base_ = net::parse_url("AWS_ENDPOINT_URL", endpoint);
    while (base_.target.ends_with('/')) base_.target.pop_back();
    base_.target += "/" + bucket_;
  }
  while (base_.target.ends_with('/')) base_.target.pop_back();
}

std::string S3Store::url_of(const std::string& key) const {
  return "s3://" + bucket_ + (key.empty() ? "" : "/" + key);
}

net::HttpAnswer S3Store::ask_once(const Request& request, const Credentials& credentials) {
  std::string path = base_.target;
  if (!request.key.empty()) path += "/" + request.key;
  UnsignedRequest wanted{.method = request.method,
                         .host = net::authority(base_),
                         .path = path.empty() ? "/" : path,
                         .query = request.query,
                         .fields = request.fields,
                         // The signature covers the body, so that the store rejects damaged bytes.
                         .payload_sha256 = data::sha256_hex(request.body)};
  net::HttpQuestion question{
      .method = request.method,
      .url = base_,
      .fields = signed_fields(wanted, credentials, region_, "s3", system_now()),
      .body = request.body,
      .max_answer_bytes = kMaxStoreAnswer};
  // The text that was signed: another encoding of the same path would not match.
  question.url.target = request_target(wanted);
  if (request.is_late) question.patience = work_patience(request.work_bytes);
  net::HttpAnswer answer = sessions_.ask(question);
  // Each answer tells the store's time, so that now() usually takes no request.
  if (!answer.error) clock_.note(answer.head.date);
  return answer;
}

std::optional<StoreRefusal> S3Store::refusal_of(const Request& request,
                                                const net::HttpAnswer& answer) {
  if (answer.error) return refusal_of_error(answer);
  const int status = answer.head.status;
  const bool is_answer =
      status < 300 || status == request.accepted || status == request.also_accepted;
  // A copy reports its status before it is done, so its body may contain an error.
  if (is_answer && (!request.is_late || xml_text(answer.body, "Error/Code").empty())) {
    return std::nullopt;
  }
  StoreRefusal refusal =
      s3_refusal(status, answer.head.reason, answer.body, answer.head.bucket_region);
  // An error in the body of a 200 is the server's own trouble, so a retry may help.
  if (is_answer) refusal = {StoreError::kAway, refusal.sentence, true};
  return refusal;
}

net::HttpAnswer S3Store::ask(const Request& request, bool* was_repeated) {
  net::HttpAnswer answer =
      ask_with_retries({.what = request.method + " " + url_of(request.key),
                        .ask = [&] { return ask_once(request, credentials_.get()); },
                        .refusal_of = [&](const auto& each) { return refusal_of(request, each); },
                        .renew = [this] { credentials_.forget(); }},
                       interrupt_, was_repeated);
  if (answer.head.status < 300) has_bucket_ = true;
  return answer;
}

std::optional<ObjectInfo> S3Store::find(const std::string& key) {
  const net::HttpAnswer answer =
      ask({.method = "HEAD", .key = key, .accepted = net::http_status::kNotFound});
  if (answer.head.status == net::http_status::kNotFound) {
    // HEAD has no body, so a missing bucket looks like a missing object here. GET tells them apart;
    // once the bucket has been seen, this costs no further request.
    if (has_bucket_) return std::nullopt;
    const auto head = open(key, 1);
    return head ? std::optional(head->info) : std::nullopt;
  }
  return info_from(key, answer.head, answer.head.content_length.value_or(0));
}

std::optional<ObjectHead> S3Store::open(const std::string& key, std::size_t max_bytes) {
  net::HttpAnswer answer = ask({.method = "GET",
                                .key = key,
                                .fields = {{"range", range_text(0, max_bytes)}},
                                .accepted = net::http_status::kNotFound,
                                .also_accepted = 416});  // the object is empty
  if (answer.head.status == net::http_status::kNotFound) {
    const StoreRefusal why =
        s3_refusal(net::http_status::kNotFound, answer.head.reason, answer.body, "");
    // A missing bucket is an error, unlike a missing object.
    if (why.error == StoreError::kNotFound) {
      has_bucket_ = true;
      return std::nullopt;
    }
    throw std::system_error(why.error, "GET " + url_of(key) + ": " + why.sentence);
  }
  // An empty object has no first byte, so its metadata takes another request.
  if (answer.head.status == net::http_status::kRangeNotSatisfiable) {
    const auto info = find(key);
    return info ? std::optional(ObjectHead{.info = *info, .bytes = {}}) : std::nullopt;
  }
  const std::uint64_t size = whole_size(answer, url_of(key));
  return ObjectHead{.info = info_from(key, answer.head, size), .bytes = std::move(answer.body)};
}

std::size_t S3Store::read(const ObjectInfo& object, std::uint64_t offset, std::span<std::byte> to) {
  Request request{
      .method = "GET", .key = object.key, .fields = {{"range", range_text(offset, to.size())}}};
  // Reads this version only, so a replaced object cannot mix with the old one.
  if (!object.etag.empty()) request.fields.emplace_back("if-match", object.etag);
  return take_range(ask(request), url_of(object.key), offset, to);
}

ObjectListing S3Store::list(const std::string& prefix, bool deeply) {
  return all_pages(url_of(prefix), prefix, [&](const std::string& next) {
    Request request{.method = "GET", .query = {{"list-type", "2"}, {"prefix", prefix}}};
    if (!deeply) request.query.emplace_back("delimiter", "/");
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    return read_listing(ask(request).body);
  });
}

void S3Store::put(const std::string& key, std::span<const std::byte> bytes) {
  // Without a condition: the last of several writers wins.
  static_cast<void>(ask({.method = "PUT", .key = key, .body = bytes}));
}

// Some stores accept the header and ignore it. They cannot distinguish two writers, so they are
// rejected.
void S3Store::check_conditions(const std::string& key) {
  // Checked once for each bucket, before the first write that relies on it.
  if (heeds_conditions_) return;
  const std::string probe = fmt::format("{}.disttf-probe-{:016x}", key, random_number());
  const Request request{
      .method = "PUT", .key = probe, .fields = {{"if-none-match", "*"}}, .accepted = 412};
  // Writes a name twice, the second time under the condition that it does not exist.
  put(probe, {});
  const net::HttpAnswer answer = ask(request);
  // Before the result is judged, so that no probe remains.
  remove(probe);
  if (answer.head.status != 412) {
    throw std::system_error(StoreError::kNoConditions, "cannot write " + url_of(key));
  }
  heeds_conditions_ = true;
}

bool S3Store::put_new(const std::string& key, std::span<const std::byte> bytes) {
  check_conditions(key);
  const net::HttpAnswer answer = ask({.method = "PUT",
                                      .key = key,
                                      .fields = {{"if-none-match", "*"}},
                                      .body = bytes,
                                      .accepted = 412});
  if (answer.head.status != 412) return true;
  // A repeated request may have met its own first attempt: equal bytes are ours.
  return has_bytes(open(key, bytes.size() + 1), bytes);
}

std::unique_ptr<ObjectUpload> S3Store::upload(const std::string& key) {
  return std::make_unique<S3Upload>(*this, key);
}

void S3Store::copy(const std::string& from, const std::string& to) {
  static_cast<void>(
      ask({.method = "PUT",
           .key = to,
           .fields = {{"x-amz-copy-source", percent_encoded("/" + bucket_ + "/" + from, true)}},
           .is_late = true}));
}

void S3Store::remove(const std::string& key) {
  static_cast<void>(ask({.method = "DELETE", .key = key, .accepted = net::http_status::kNotFound}));
}

std::chrono::sys_seconds S3Store::now() {
  if (!clock_.is_known()) {
    static_cast<void>(ask({.method = "GET", .query = {{"list-type", "2"}, {"max-keys", "1"}}}));
  }
  return clock_.now();
}

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
