#include "net/wire/metrics_messages.h"

#include <cstdint>
#include <utility>

#include "net/wire/codec.h"

namespace disttf::net {
namespace {

constexpr std::size_t kLengthBytes = 4;

}  // namespace

std::vector<std::byte> encode_metrics(std::span<const std::string> texts) {
  std::size_t size = 0;
  std::size_t count = 0;
  for (; count < texts.size(); ++count) {
    // The rest is dropped rather than sent in a second reply.
    const std::size_t next = size + kLengthBytes + texts[count].size();
    if (texts[count].size() > kMaxMetricsBytes || next > kMaxMetricsReplyBytes) {
      break;
    }
    size = next;
  }
  ByteWriter body(size);
  for (const std::string& text : texts.first(count)) {
    body.put(static_cast<std::uint32_t>(text.size()));
    body.put_bytes(std::as_bytes(std::span(text)));
  }
  return std::move(body).take();
}

std::error_code decode_metrics(std::span<const std::byte> body, std::vector<std::string>& out) {
  std::vector<std::string> texts;
  while (!body.empty()) {
    ByteReader reader(body);
    const auto length = reader.get<std::uint32_t>();
    // The length comes from the peer, so it is compared with the bytes that are there.
    if (!reader.ok() || length > kMaxMetricsBytes || length > reader.rest().size()) {
      return WireError::kBadBody;
    }
    const auto* const text = reinterpret_cast<const char*>(reader.rest().data());
    texts.emplace_back(text, length);
    body = body.subspan(kLengthBytes + length);
  }
  out = std::move(texts);
  return {};
}

}  // namespace disttf::net
