#include "run/monitor/shell/asset_reply.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "data/gzip.h"
#include "net/http/http_status.h"
#include "web/assets.h"

namespace disttf::roles {
namespace {

const web::Asset* find_asset(std::string_view path) {
  const std::span<const web::Asset> all = web::assets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [path](const web::Asset& asset) { return asset.path == path; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool is_asset(std::string_view path) noexcept { return find_asset(path) != nullptr; }

std::optional<net::HttpReply> asset_reply(std::string_view path,
                                          const net::HttpServerRequest& request) {
  const web::Asset* const asset = find_asset(path);
  if (asset == nullptr) {
    return std::nullopt;
  }
  net::HttpReply reply{.content_type = std::string(asset->content_type), .body = {}};
  reply.fields = {{"ETag", std::string(asset->tag)},
                  // A cache must not give the compressed form to a client that cannot read it.
                  {"Vary", "Accept-Encoding"},
                  {"Cache-Control", "no-cache"}};  // may be cached, but must be revalidated
  if (request.if_none_match == asset->tag) {
    reply.status = net::http_status::kNotModified;
    return reply;
  }
  // Assets are stored compressed: almost every client takes them as they are.
  if (net::takes_gzip(request.accept_encoding)) {
    reply.fields.emplace_back("Content-Encoding", "gzip");
    reply.body.assign(asset->gzip.begin(), asset->gzip.end());
    return reply;
  }
  std::vector<std::uint8_t> plain;
  if (const std::error_code error = data::gunzip(asset->gzip, asset->bytes, plain)) {
    throw std::system_error(error, "cannot unpack the page");
  }
  reply.body.assign(plain.begin(), plain.end());
  return reply;
}

}  // namespace disttf::roles
