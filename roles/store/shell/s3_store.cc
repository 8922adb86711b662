#include "roles/store/shell/s3_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/sha256.h"
#include "net/wire/text.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/store/core/store_error.h"
#include "roles/store/shell/s3_upload.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kMaxStoreAnswer = std::size_t{64} << 20U;  // a page of a listing has 1 MB

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return {};
}

std::string setting_of(const ProfileSettings& profile, const char* name) {
  const auto found = profile.find(name);
  return found == profile.end() ? "" : found->second;
}

// What the header says of an object.
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
  if (endpoint.empty()) {
    // A bucket's dots would be further labels, which the certificate does not cover.
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
                         .payload_sha256 = data::sha256_hex(request.body)};
  net::HttpQuestion question{
      .method = request.method,
      .url = base_,
      .fields = signed_fields(wanted, credentials, region_, "s3", system_now()),
      .body = request.body,
      .max_answer_bytes = kMaxStoreAnswer};
  question.url.target = request_target(wanted);
  return sessions_.ask(question);
}

net::HttpAnswer S3Store::ask(const Request& request, bool* was_repeated) {
  bool has_refreshed = false;
  for (int tries = 1;; ++tries) {
    net::HttpAnswer answer = ask_once(request, credentials_.get());
    const int status = answer.head.status;
    if (was_repeated != nullptr && answer.was_repeated) *was_repeated = true;
    S3Refusal refusal;
    if (!answer.error) {
      clock_.note(answer.head.date);
      const bool is_answer =
          status < 300 || status == request.accepted || status == request.also_accepted;
      if (is_answer && (!request.is_late || xml_text(answer.body, "Error/Code").empty())) {
        return answer;
      }
      refusal = s3_refusal(status, answer.head.reason, answer.body, answer.head.bucket_region);
      // What was said too late is said of a server's own trouble.
      if (is_answer) refusal = {StoreError::kAway, refusal.sentence, true};
    } else {
      const bool is_certificate = is_certificate_error(answer.error);
      refusal = {is_certificate ? StoreError::kRefused : StoreError::kAway, answer.sentence,
                 !is_certificate};
    }
    if (refusal.error == StoreError::kExpired && !std::exchange(has_refreshed, true)) {
      credentials_.forget();
      continue;
    }
    const std::string what = request.method + " " + url_of(request.key) + ": " + refusal.sentence;
    if (!refusal.may_pass || tries >= kStoreTries) throw std::system_error(refusal.error, what);
    if (was_repeated != nullptr) *was_repeated = true;
    pause_before_try(tries + 1, answer.head.retry_after, what, interrupt_);
  }
}

std::optional<ObjectInfo> S3Store::find(const std::string& key) {
  const net::HttpAnswer answer = ask({.method = "HEAD", .key = key, .accepted = 404});
  if (answer.head.status == 404) return std::nullopt;
  return info_from(key, answer.head, answer.head.content_length.value_or(0));
}

std::optional<ObjectHead> S3Store::open(const std::string& key, std::size_t max_bytes) {
  net::HttpAnswer answer = ask({.method = "GET",
                                .key = key,
                                .fields = {{"range", "bytes=0-" + std::to_string(max_bytes - 1)}},
                                .accepted = 404,
                                .also_accepted = 416});  // it is empty
  if (answer.head.status == 404) {
    const S3Refusal why = s3_refusal(404, answer.head.reason, answer.body, "");
    if (why.error == StoreError::kNotFound) return std::nullopt;
    throw std::system_error(why.error, "GET " + url_of(key) + ": " + why.sentence);
  }
  if (answer.head.status == 416) {
    const auto info = find(key);
    return info ? std::optional(ObjectHead{.info = *info, .bytes = {}}) : std::nullopt;
  }
  std::uint64_t size = answer.body.size();
  if (answer.head.status == 206) {
    const auto range = net::read_content_range(answer.head.content_range);
    if (!range || range->first != 0 || !range->total || *range->last + 1 != size) {
      throw std::system_error(StoreError::kBadAnswer, "GET " + url_of(key) +
                                                          ": the Content-Range is " +
                                                          net::quoted(answer.head.content_range));
    }
    size = *range->total;
  }
  return ObjectHead{.info = info_from(key, answer.head, size), .bytes = std::move(answer.body)};
}

std::size_t S3Store::read(const ObjectInfo& object, std::uint64_t offset, std::span<std::byte> to) {
  Request request{
      .method = "GET",
      .key = object.key,
      .fields = {{"range", fmt::format("bytes={}-{}", offset, offset + to.size() - 1)}}};
  if (!object.etag.empty()) request.fields.emplace_back("if-match", object.etag);
  const net::HttpAnswer answer = ask(request);
  const auto range = net::read_content_range(answer.head.content_range);
  if (answer.head.status != 206 || !range || range->first != offset ||
      answer.body.size() > to.size() || *range->last - offset + 1 != answer.body.size()) {
    throw std::system_error(StoreError::kBadAnswer, "GET " + url_of(object.key) +
                                                        ": another range came than " +
                                                        std::to_string(to.size()) + " bytes from " +
                                                        std::to_string(offset) + " on");
  }
  std::memcpy(to.data(), answer.body.data(), answer.body.size());
  return answer.body.size();
}

ObjectListing S3Store::list(const std::string& prefix, bool deeply) {
  ObjectListing all;
  std::string next;
  do {
    Request request{.method = "GET", .query = {{"list-type", "2"}, {"prefix", prefix}}};
    if (!deeply) request.query.emplace_back("delimiter", "/");
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    const net::HttpAnswer answer = ask(request);
    auto page = read_listing(answer.body);
    if (!page || !is_listing_of(page->listing, prefix) ||
        (!page->next.empty() && page->next == next)) {
      throw std::system_error(StoreError::kBadAnswer,
                              "the listing of " + url_of(prefix) + " cannot be read");
    }
    std::ranges::move(page->listing.objects, std::back_inserter(all.objects));
    std::ranges::move(page->listing.folders, std::back_inserter(all.folders));
    next = std::move(page->next);
  } while (!next.empty());
  return all;
}

void S3Store::put(const std::string& key, std::span<const std::byte> bytes) {
  static_cast<void>(ask({.method = "PUT", .key = key, .body = bytes}));
}

// Some stores take the field and do not heed it. Those cannot tell two writers apart.
void S3Store::check_conditions(const std::string& key) {
  if (heeds_conditions_) return;
  const std::string probe = fmt::format("{}.disttf-probe-{:016x}", key, random_number());
  const Request request{
      .method = "PUT", .key = probe, .fields = {{"if-none-match", "*"}}, .accepted = 412};
  put(probe, {});
  const net::HttpAnswer answer = ask(request);
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
  const auto there = open(key, bytes.size() + 1);
  return there && there->bytes.size() == bytes.size() &&
         std::memcmp(there->bytes.data(), bytes.data(), bytes.size()) == 0;
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
  static_cast<void>(ask({.method = "DELETE", .key = key, .accepted = 404}));
}

std::chrono::sys_seconds S3Store::now() {
  if (!clock_.is_known()) {
    static_cast<void>(ask({.method = "GET", .query = {{"list-type", "2"}, {"max-keys", "1"}}}));
  }
  return clock_.now();
}

}  // namespace disttf::roles
