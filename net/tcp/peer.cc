#include "net/tcp/peer.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/tls/credentials.h"
#include "net/wire/bare_message.h"

namespace disttf::net {
namespace {

[[nodiscard]] std::error_code receive_welcome(Channel& channel, const FrameHeader& header,
                                              Welcome& welcome, Deadline deadline) {
  if (header.body_size != kBodyBytes<Welcome>) return WireError::kBadBody;
  std::vector<std::byte> body(kBodyBytes<Welcome>);
  if (const std::error_code error = channel.receive_body(body, deadline)) return error;
  return decode(body, welcome);
}

// Sends HELLO and reads its answer, on a channel that was just connected.
void exchange_hello(OpenedChannel& opened, const Hello& hello, Deadline deadline) {
  FrameHeader header = HelloFrame{}.to_header();
  opened.error = opened.channel->send(header, encode(hello), deadline);
  if (!opened.error) opened.error = opened.channel->receive_header(header, deadline);
  if (opened.error) return;
  if (!WelcomeFrame{}.from_header(header)) {
    opened.error = receive_welcome(*opened.channel, header, opened.welcome, deadline);
  } else if (!RefusedFrame{}.from_header(header)) {
    opened.refusal = receive_refusal(*opened.channel, header, deadline);
    opened.error = WireError::kRefused;
  } else {
    opened.error = WireError::kUnexpected;
  }
}

}  // namespace

OpenedChannel open_channel(const Address& address, const Hello& hello, const Interrupt& interrupt,
                           Deadline deadline, Credentials* credentials) {
  OpenedChannel opened;
  std::string detail;
  opened.channel = credentials != nullptr ? connect_tls(address, *credentials, hello, interrupt,
                                                        deadline, opened.error, detail)
                                          : connect_tcp(address, interrupt, deadline, opened.error);
  if (opened.channel) exchange_hello(opened, hello, deadline);
  if (credentials != nullptr && opened.error) {
    if (auto refusal = credentials->refusal(opened.error, to_string(address), detail)) {
      opened.error = WireError::kRefused;
      opened.refusal = std::move(*refusal);
    }
  }
  if (opened.error == WireError::kBadVersion) {
    // Whatever it has answered, it will not be understood later either.
    opened.error = WireError::kRefused;
    opened.refusal = {.exit_code = kExitMisconfigured,
                      .sentence = to_string(address) + " speaks another wire version than " +
                                  std::to_string(kWireVersion) +
                                  ": run the same release of disttf everywhere"};
  }
  // After a failed handshake the position in the stream is unknown, so the channel is unusable.
  if (opened.error) opened.channel.reset();
  return opened;
}

Refusal receive_refusal(Channel& channel, const FrameHeader& header, Deadline deadline) {
  Refusal refusal{.exit_code = kExitRestartMe,
                  // Retrying cannot help, so this counts as a refusal.
                  .sentence = "the peer refused, but its reason did not arrive"};
  // The bound is checked before the allocation, because the size comes from the peer.
  if (header.body_size <= kMaxControlBodyBytes) {
    std::vector<std::byte> body(header.body_size);
    // On an error the stock sentence stays.
    if (!channel.receive_body(body, deadline)) static_cast<void>(decode(body, refusal));
  }
  channel.close();
  return refusal;
}

std::error_code receive_text(Channel& channel, std::uint64_t size, Deadline deadline,
                             std::string& text) {
  text.clear();
  while (text.size() < size) {
    const std::size_t have = text.size();
    text.resize(have + next_piece(have, size));
    const auto rest = std::as_writable_bytes(std::span(text)).subspan(have);
    if (const std::error_code error = channel.receive_body(rest, deadline)) return error;
  }
  return {};
}

}  // namespace disttf::net
