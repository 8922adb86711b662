#include "net/wire/handshake.h"

#include <string_view>

#include "net/wire/codec.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kRefusalPrefixBytes = 12;

[[nodiscard]] bool is_purpose(std::uint8_t value) noexcept {
  return value >= static_cast<std::uint8_t>(ChannelPurpose::kStep) &&
         value <= static_cast<std::uint8_t>(ChannelPurpose::kRequest);
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  ByteWriter body(kHelloBytes);
  body.put_bytes(std::as_bytes(std::span(hello.cluster)));
  body.put(hello.incarnation);
  body.put(hello.last.generation);
  body.put(hello.last.step);
  body.put(hello.last.push);
  body.put(static_cast<std::uint32_t>(hello.from.index));
  body.put(static_cast<std::uint32_t>(hello.to.index));
  body.put(static_cast<std::uint8_t>(hello.from.job));
  body.put(static_cast<std::uint8_t>(hello.to.job));
  body.put(static_cast<std::uint8_t>(hello.purpose));
  body.put(hello.replica);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, Hello& out) {
  ByteReader reader(body);
  Hello hello;
  reader.get_bytes(std::as_writable_bytes(std::span(hello.cluster)));
  hello.incarnation = reader.get<std::uint64_t>();
  hello.last.generation = reader.get<Generation>();
  hello.last.step = reader.get<std::uint64_t>();
  hello.last.push = reader.get<std::uint64_t>();
  hello.from.index = reader.get<std::uint32_t>();
  hello.to.index = reader.get<std::uint32_t>();
  const auto from_job = reader.get<std::uint8_t>();
  const auto to_job = reader.get<std::uint8_t>();
  const auto purpose = reader.get<std::uint8_t>();
  hello.replica = reader.get<std::uint8_t>();
  // Everything is checked before `out` is assigned, so a refused body changes nothing.
  if (!reader.complete() || hello.replica > 1 || !is_job(from_job) || !is_job(to_job) ||
      !is_purpose(purpose)) {
    return WireError::kBadBody;
  }
  hello.from.job = static_cast<Job>(from_job);
  hello.to.job = static_cast<Job>(to_job);
  hello.purpose = static_cast<ChannelPurpose>(purpose);
  out = hello;
  return {};
}

std::vector<std::byte> encode(const Welcome& welcome) {
  ByteWriter body(kWelcomeBytes);
  body.put(welcome.incarnation);
  body.put(welcome.step);
  body.put(welcome.generation);
  body.put(welcome.heartbeat_ms);
  body.put(static_cast<std::uint8_t>(welcome.state));
  body.put(static_cast<std::uint8_t>(welcome.replica_role));
  // Two reserved bytes, which must be zero until a version defines them.
  body.put(std::uint16_t{0});
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, Welcome& out) {
  ByteReader reader(body);
  Welcome welcome;
  welcome.incarnation = reader.get<std::uint64_t>();
  welcome.step = reader.get<std::uint64_t>();
  welcome.generation = reader.get<Generation>();
  welcome.heartbeat_ms = reader.get<std::uint32_t>();
  const auto state = reader.get<std::uint8_t>();
  const auto replica_role = reader.get<std::uint8_t>();
  const auto reserved = reader.get<std::uint16_t>();
  if (!reader.complete() || reserved != 0 ||
      state > static_cast<std::uint8_t>(ShardState::kFinished) ||
      replica_role > static_cast<std::uint8_t>(ReplicaRole::kBackup)) {
    return WireError::kBadBody;
  }
  welcome.state = static_cast<ShardState>(state);
  welcome.replica_role = static_cast<ReplicaRole>(replica_role);
  out = welcome;
  return {};
}

std::vector<std::byte> encode(const Refusal& refusal) {
  // Cuts at a character boundary, so the peer can show the sentence.
  const std::string_view sentence = cut_utf8(refusal.sentence, kMaxSentenceBytes);
  ByteWriter body(kRefusalPrefixBytes + sentence.size());
  body.put(std::uint32_t{refusal.exit_code});  // the code's byte and three reserved ones
  body.put(refusal.replaced_by);
  body.put_bytes(std::as_bytes(std::span(sentence)));
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, Refusal& out) {
  ByteReader reader(body);
  const auto exit_code = reader.get<std::uint32_t>();
  const auto replaced_by = reader.get<std::uint64_t>();
  // The sentence may be empty, but not longer than a peer of this version sends.
  if (!reader.ok() || exit_code > 0xFFU || reader.rest().size() > kMaxSentenceBytes) {
    return WireError::kBadBody;
  }
  const auto* text = reinterpret_cast<const char*>(reader.rest().data());
  out = Refusal{.exit_code = static_cast<std::uint8_t>(exit_code),
                // The sentence comes from a peer and is shown in the log, so line breaks and
                // control characters are replaced.
                .sentence = one_line(std::string_view(text, reader.rest().size())),
                .replaced_by = replaced_by};
  return {};
}

}  // namespace disttf::net
