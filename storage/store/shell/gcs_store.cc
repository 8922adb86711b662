#include "storage/store/shell/gcs_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "storage/store/core/store_answers.h"
#include "storage/store/core/store_error.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kMaxGcsAnswer = std::size_t{64} << 20U;  // a page of a listing has 1 MB
constexpr const char* kGcsEndpoint = "https://storage.googleapis.com";
// The fields of an object that answers should contain.
constexpr const char* kObjectFields = "name,size,generation,crc32c,updated";
constexpr const char* kListFields =
    "items(name,size,generation,crc32c,updated),prefixes,nextPageToken";
// As a condition: only if there is no object.
constexpr const char* kNoGeneration = "0";

net::Url endpoint_of(const StoreEnvironment& environment) {
  std::string endpoint = environment.value_of("STORAGE_EMULATOR_HOST");
  const char* name = "STORAGE_EMULATOR_HOST";
  if (!endpoint.empty() && endpoint.find("://") == std::string::npos) {
    // Emulators are usually named without a scheme.
    endpoint.insert(0, "http://");
  }
  if (endpoint.empty()) {
    name = "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE";
    endpoint = environment.value_of(name);
  }
  if (endpoint.empty()) endpoint = kGcsEndpoint;
  net::Url url = net::parse_url(name, endpoint);
  // Paths are appended with their own slash.
  while (url.target.ends_with('/')) url.target.pop_back();
  return url;
}

ObjectInfo gcs_info_from(const std::string& key, const net::HttpHead& head, std::uint64_t size) {
  return {.key = key,
          .size_bytes = size,
          .etag = head.generation,
          .modified = time_from_http(head.last_modified).value_or(std::chrono::sys_seconds{}),
          .crc32c = crc32c_in(head.checksums)};
}

}  // namespace

GcsStore::GcsStore(std::string bucket, const StoreEnvironment& environment)
    : bucket_(std::move(bucket)),
      is_emulator_(!environment.value_of("STORAGE_EMULATOR_HOST").empty()),
      base_(endpoint_of(environment)),
      credentials_(environment, interrupt_),
      sessions_("", environment.proxy, interrupt_) {}

std::string GcsStore::url_of(const std::string& key) const {
  return "gs://" + bucket_ + (key.empty() ? "" : "/" + key);
}

std::string GcsStore::path_of(const std::string& key) const {
  return "/storage/v1/b/" + bucket_ + "/o" + (key.empty() ? "" : "/" + percent_encoded(key, false));
}

net::HttpAnswer GcsStore::ask_once(const Request& request) {
  net::HttpQuestion question{.method = request.method,
                             .url = base_,
                             .fields = request.fields,
                             .body = request.body,
                             .max_answer_bytes = kMaxGcsAnswer,
                             .patience = request.patience};
  question.url.target = base_.target + request.path;
  char before = '?';
  for (const auto& [name, value] : request.query) {
    question.url.target += before + name + "=" + percent_encoded(value, false);
    before = '&';
  }
  // Emulators take no credentials.
  if (!is_emulator_) {
    question.fields.emplace_back("Authorization", "Bearer " + credentials_.token());
  }
  net::HttpAnswer answer = sessions_.ask(question);
  // Each answer tells the store's time, so that now() usually takes no request.
  if (!answer.error) clock_.note(answer.head.date);
  return answer;
}

net::HttpAnswer GcsStore::ask(const Request& request, bool* was_repeated) {
  const auto refusal_of = [&](const net::HttpAnswer& answer) -> std::optional<StoreRefusal> {
    if (answer.error) return refusal_of_error(answer);
    const int status = answer.head.status;
    if (status < 300 || status == request.accepted || status == request.also_accepted) {
      return std::nullopt;
    }
    return gcs_refusal(status, answer.head.reason, answer.body, request.key.empty());
  };
  return ask_with_retries({.what = request.method + " " + url_of(request.key),
                           .ask = [&] { return ask_once(request); },
                           .refusal_of = refusal_of,
                           .renew = [this] { credentials_.forget(); }},
                          interrupt_, was_repeated);
}

bool GcsStore::is_missing(const net::HttpAnswer& answer, const std::string& key) const {
  if (answer.head.status != net::http_status::kNotFound) return false;
  const StoreRefusal why =
      gcs_refusal(net::http_status::kNotFound, answer.head.reason, answer.body, false);
  if (why.error == StoreError::kNotFound) return true;
  throw std::system_error(why.error, "GET " + url_of(key) + ": " + why.sentence);
}

std::optional<ObjectInfo> GcsStore::find(const std::string& key) {
  const net::HttpAnswer answer = ask({.method = "GET",
                                      .path = path_of(key),
                                      .key = key,
                                      .query = {{"fields", kObjectFields}},
                                      .accepted = net::http_status::kNotFound});
  if (is_missing(answer, key)) return std::nullopt;
  auto found = read_gcs_object(answer.body);
  if (!found || found->key != key) {
    throw std::system_error(StoreError::kBadAnswer,
                            "the metadata of " + url_of(key) + " cannot be read");
  }
  return found;
}

std::optional<ObjectHead> GcsStore::open(const std::string& key, std::size_t max_bytes) {
  // Asks for the first bytes directly: the answer contains the size, which saves a request for
  // metadata.
  net::HttpAnswer answer = ask({.method = "GET",
                                .path = path_of(key),
                                .key = key,
                                .query = {{"alt", "media"}},
                                .fields = {{"range", range_text(0, max_bytes)}},
                                .accepted = net::http_status::kNotFound,
                                .also_accepted = 416});  // it is empty
  if (is_missing(answer, key)) return std::nullopt;
  // An empty object has no first byte, so its metadata takes another request.
  if (answer.head.status == net::http_status::kRangeNotSatisfiable) {
    const auto info = find(key);
    return info ? std::optional(ObjectHead{.info = *info, .bytes = {}}) : std::nullopt;
  }
  const std::uint64_t size = whole_size(answer, url_of(key));
  return ObjectHead{.info = gcs_info_from(key, answer.head, size), .bytes = std::move(answer.body)};
}

std::size_t GcsStore::read(const ObjectInfo& object, std::uint64_t offset,
                           std::span<std::byte> to) {
  Request request{.method = "GET",
                  .path = path_of(object.key),
                  .key = object.key,
                  .query = {{"alt", "media"}},
                  .fields = {{"range", range_text(offset, to.size())}}};
  // Reads this generation only, so a replaced object cannot mix with the old one.
  if (!object.etag.empty()) request.query.emplace_back("generation", object.etag);
  return take_range(ask(request), url_of(object.key), offset, to);
}

ObjectListing GcsStore::list(const std::string& prefix, bool deeply) {
  return all_pages(url_of(prefix), prefix, [&](const std::string& next) {
    Request request{.method = "GET",
                    .path = path_of(""),
                    .key = {},
                    .query = {{"prefix", prefix}, {"fields", kListFields}}};
    if (!deeply) request.query.emplace_back("delimiter", "/");
    if (!next.empty()) request.query.emplace_back("pageToken", next);
    return read_gcs_listing(ask(request).body);
  });
}

std::optional<ObjectInfo> GcsStore::write(const Request& request, std::uint64_t size_bytes,
                                          std::uint32_t crc32c) {
  bool was_repeated = false;
  const net::HttpAnswer answer = ask(request, &was_repeated);
  const bool is_refused = answer.head.status == 412;
  // 412: another writer was first, or a repeated request of ours had succeeded before its answer
  // was lost. The stored bytes tell which.
  if (is_refused && !was_repeated) return std::nullopt;
  auto there = is_refused ? find(request.key) : read_gcs_object(answer.body);
  const bool is_ours = there && there->key == request.key && there->size_bytes == size_bytes &&
                       there->crc32c == crc32c;
  if (is_ours) return there;
  if (is_refused) return std::nullopt;
  throw std::system_error(
      StoreError::kBadAnswer,
      "the object at " + url_of(request.key) + " has another size or CRC-32C than the sent bytes");
}

std::optional<ObjectInfo> GcsStore::put_after(const std::string& generation, const std::string& key,
                                              std::span<const std::byte> bytes) {
  const std::uint32_t sum = data::crc32c(bytes);
  const std::string boundary =
      // 128 random bits, so that the boundary does not occur in the data.
      fmt::format("disttf-{:016x}{:016x}", random_number(), random_number());
  const std::vector<std::byte> body = gcs_upload_body(bytes, sum, boundary);
  return write({.method = "POST",
                .path = "/upload" + path_of(""),
                .key = key,
                .query = {{"uploadType", "multipart"},
                          {"name", key},
                          {"ifGenerationMatch", generation},
                          {"fields", kObjectFields}},
                .fields = {{"Content-Type", "multipart/related; boundary=" + boundary}},
                .body = body,
                .accepted = 412},
               bytes.size(), sum);
}

std::optional<ObjectInfo> GcsStore::compose_after(const std::string& generation,
                                                  const std::string& key,
                                                  std::span<const ObjectInfo> parts,
                                                  std::uint32_t crc32c) {
  std::uint64_t size = 0;
  for (const ObjectInfo& part : parts) size += part.size_bytes;
  const std::string body = gcs_compose_body(parts);
  return write({.method = "POST",
                .path = path_of(key) + "/compose",
                .key = key,
                .query = {{"ifGenerationMatch", generation}, {"fields", kObjectFields}},
                .fields = {{"Content-Type", "application/json"}},
                .body = std::as_bytes(std::span(body.data(), body.size())),
                .accepted = 412,
                .patience = work_patience(size)},
               size, crc32c);
}

std::string GcsStore::generation_of(const std::string& key) {
  const auto there = find(key);
  // Another process may have removed the object meanwhile.
  return there ? there->etag : kNoGeneration;
}

// Tries the write for a new name first, the usual case, and looks up the present generation only if
// the name is taken.
void GcsStore::put(const std::string& key, std::span<const std::byte> bytes) {
  std::string generation = kNoGeneration;
  for (int i = 0; i < kStoreTries; ++i) {
    if (put_after(generation, key, bytes)) return;
    generation = generation_of(key);
  }
  throw std::system_error(StoreError::kAway,
                          "another process writes " + url_of(key) + " at the same time");
}

bool GcsStore::put_new(const std::string& key, std::span<const std::byte> bytes) {
  if (put_after(kNoGeneration, key, bytes)) return true;
  // A write that succeeded without an answer to us is ours if the bytes are equal.
  return has_bytes(open(key, bytes.size() + 1), bytes);
}

std::unique_ptr<ObjectUpload> GcsStore::upload(const std::string& key) {
  return std::make_unique<GcsUpload>(*this, key);
}

// The copy of a large object takes several requests, each of which continues the one before.
void GcsStore::copy(const std::string& from, const std::string& to) {
  std::string token;
  std::uint64_t copied_bytes = 0;
  // A server whose answers report no progress would keep the caller here for ever.
  for (int tries = 0; tries < kStoreTries;) {
    Request request{
        .method = "POST",
        .path = path_of(from) + "/rewriteTo/b/" + bucket_ + "/o/" + percent_encoded(to, false),
        .key = from,
        .patience = work_patience()};
    if (!token.empty()) request.query.emplace_back("rewriteToken", token);
    const auto copied = read_gcs_copy(ask(request).body);
    if (!copied) {
      throw std::system_error(StoreError::kBadAnswer,
                              "the copy of " + url_of(from) + " has a malformed answer");
    }
    if (copied->is_done) return;
    token = copied->token;
    tries = copied->copied_bytes > copied_bytes ? 0 : tries + 1;
    copied_bytes = std::max(copied_bytes, copied->copied_bytes);
  }
  throw std::system_error(StoreError::kBadAnswer,
                          "the copy of " + url_of(from) + " makes no progress");
}

void GcsStore::remove(const std::string& key) {
  // A missing object is no error: a repeated request may have removed it before.
  static_cast<void>(ask({.method = "DELETE",
                         .path = path_of(key),
                         .key = key,
                         .accepted = net::http_status::kNotFound}));
}

std::chrono::sys_seconds GcsStore::now() {
  if (!clock_.is_known()) {
    static_cast<void>(ask({.method = "GET",
                           .path = path_of(""),
                           .key = {},
                           .query = {{"maxResults", "1"}, {"fields", "nextPageToken"}}}));
  }
  return clock_.now();
}

GcsUpload::GcsUpload(GcsStore& store, std::string key)
    : store_(store),
      key_(std::move(key)),
      prefix_(fmt::format("{}.disttf-part-{:016x}-", key_, random_number())),
      parts_([this](std::size_t number, std::span<const std::byte> bytes) {
        const auto put = store_.put_after(kNoGeneration, key_of(number), bytes);
        if (!put) {
          throw std::system_error(StoreError::kExists, "cannot write " + key_of(number));
        }
        return put->etag;
      }) {}

std::string GcsUpload::key_of(std::size_t number) const {
  return fmt::format("{}{:05}", prefix_, number);
}

GcsUpload::~GcsUpload() {
  // No part may appear after its removal.
  parts_.wait();
  // Also after complete(): the composed object does not need its parts.
  const std::size_t all = parts_.count() + merged_;
  try {
    PartsUnderWay removals([this](std::size_t number, auto /*bytes*/) {
      try {
        store_.remove(key_of(number));
      } catch (const std::system_error& error) {
        log_debug(std::string("cannot remove a part of an upload: ") + error.what());
      }
      return std::string();
    });
    // Several at a time, as an upload may have many parts.
    for (std::size_t i = 0; i < all; ++i) removals.add({});
  } catch (const std::exception& error) {  // no thread could be started, or there is no memory
    log_debug(std::string("cannot remove parts of an upload: ") + error.what());
  }
}

void GcsUpload::add(std::span<const std::byte> part) {
  // The sum of everything so far: the store reports the same of a composed object, so that it can
  // be compared.
  sums_.push_back(data::crc32c(part, sums_.empty() ? 0 : sums_.back()));
  sizes_.push_back(part.size());
  parts_.add(part);
}

void GcsUpload::complete() {
  const std::vector<std::string>& generations = parts_.finish();
  std::vector<ObjectInfo> pieces;  // together the beginning of the object
  for (std::size_t i = 0; i < generations.size(); ++i) {
    // Too many for one request: composes the beginning, which is then the first piece.
    if (pieces.size() == kMaxComposed) {
      const std::string key = key_of(generations.size() + ++merged_);
      auto beginning = store_.compose_after(kNoGeneration, key, pieces, sums_[i - 1]);
      // The name has a random part, so no other process has written it.
      if (!beginning) throw std::system_error(StoreError::kExists, "cannot write " + key);
      pieces.assign(1, *std::move(beginning));
    }
    pieces.push_back({.key = key_of(i + 1), .size_bytes = sizes_[i], .etag = generations[i]});
  }
  // Replaces the generation that is there. If another process replaces the object between the two
  // requests, the condition fails and the next try uses the new generation.
  std::string generation = kNoGeneration;
  for (int i = 0; i < kStoreTries; ++i) {
    if (store_.compose_after(generation, key_, pieces, sums_.back())) return;
    generation = store_.generation_of(key_);
  }
  throw std::system_error(StoreError::kAway,
                          "another process writes " + store_.url_of(key_) + " at the same time");
}

}  // namespace disttf::roles
