// Responses of a store, and users' descriptions of one: parsed without harm, and the results fulfil
// the promises of the functions' comments.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "storage/store/core/aws_identity.h"
#include "storage/store/core/gcs_answers.h"
#include "storage/store/core/google_identity.h"
#include "storage/store/core/object_file_system.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/core/store_answers.h"
#include "storage/store/core/store_url.h"
#include "storage/store/core/webhdfs_answers.h"
#include "storage/store/core/xml_elements.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::roles;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t told = 0;
  static_cast<void>(read_xml(text, [&](std::string_view path, const std::string& inner) {
    require(!path.empty() && path.front() != '/');
    told += inner.size();
  }));
  require(told <= size);  // the output is not longer than the input
  if (const auto page = read_listing(text)) {
    for (const ObjectInfo& object : page->listing.objects) require(!object.key.empty());
  }
  if (const auto page = read_gcs_listing(text)) {
    for (const ObjectInfo& object : page->listing.objects) require(!object.key.empty());
  }
  static_cast<void>(read_gcs_object(text));
  static_cast<void>(read_gcs_copy(text));
  if (const auto sum = crc32c_from(text)) require(crc32c_text(*sum) == text);
  static_cast<void>(crc32c_in(text));
  std::string why;
  if (!google_identity_from(text, why))
    require(!why.empty() && why.find('\n') == std::string::npos);
  if (const auto federated = federated_identity_from(text, why)) {
    require(federated->file.empty() != federated->url.empty());
    static_cast<void>(subject_token_from(*federated, text));
    static_cast<void>(exchange_form(*federated, text));
    for (const auto& [name, value] : federated->fields) {
      require((name + value).find('\n') == std::string::npos);
    }
  }
  static_cast<void>(impersonated_token_from(text, {}));
  if (const auto token = google_token_from(text, {})) {
    require(token->text.find('\n') == std::string::npos);
  }
  require(google_token_error(text).find('\n') == std::string::npos);
  for (const int status : {401, 403, 404, 500}) {
    const std::string sentence = gcs_refusal(status, "", text, false).sentence;
    require(sentence.starts_with("the store answered ") && sentence.size() < 1000);
    require(sentence.find('\n') == std::string::npos);
  }
  if (const auto found = read_hdfs_listing(text)) {
    for (const HdfsStatus& each : *found) require(each.name.find('/') == std::string::npos);
  }
  static_cast<void>(read_hdfs_status(text));
  static_cast<void>(hadoop_property(text, "dfs.namenode.http-address"));
  if (const auto token = hdfs_token_from(text)) require(token->size() <= 2 * size);
  for (const int status : {403, 404, 500}) {
    const std::string sentence = hdfs_refusal(status, "", text).sentence;
    require(sentence.starts_with("the store answered ") && sentence.size() < 2000);
    require(sentence.find('\n') == std::string::npos);
  }
  for (const int status : {200, 301, 403, 404, 503}) {
    const std::string sentence = s3_refusal(status, "", text, "").sentence;
    require(sentence.starts_with("the store answered ") && sentence.size() < 1000);
    require(sentence.find('\n') == std::string::npos);
  }
  if (const auto found = credentials_from_json(text)) require(!found->secret.empty());
  if (const auto found = credentials_from_xml(text)) require(!found->secret.empty());
  if (const auto time = time_from_iso(text)) require(time_from_iso(iso_text(*time)) == time);
  static_cast<void>(time_from_http(text));
  static_cast<void>(profile_settings(text, "default", false));
  static_cast<void>(profile_settings(text, "other", true));
  if (const auto name = directory_from(text)) require(directory_text(*name) == text);
  if (is_store_url(text)) {
    try {
      const StoreUrl url = parse_store_url("a place", text);
      require(parse_store_url("a place", to_string(url)) == url);
    } catch (const std::invalid_argument& error) {
      disttf::fuzz::require_sentence(error.what(), "a place: ", 1000);  // quoted twice
    }
  }
  return 0;
}
