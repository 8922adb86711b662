#include "net/wire/run_task_request.h"

#include <string_view>
#include <utility>

#include "net/wire/codec.h"
#include "net/wire/frame.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kRunTaskRequestBytes = 20;
constexpr std::size_t kTaskEndHeadBytes = 8;
constexpr std::uint32_t kMostExitCode = 255;
constexpr std::uint32_t kMostSignal = 64;

[[nodiscard]] std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[nodiscard]] bool is_timeout(std::chrono::seconds timeout) noexcept {
  return timeout.count() >= 1 && timeout <= kLongestRequestedTimeout;
}

}  // namespace

Cluster driven(const Cluster& servers) {
  Cluster cluster = servers;
  cluster.chief = {{.host = "driver", .port = 1}};
  return cluster;
}

std::vector<std::byte> encode(const RunTaskRequest& request) {
  ByteWriter body(kRunTaskRequestBytes);
  for (const std::chrono::seconds timeout :
       {request.start, request.peer, request.worker, request.heartbeat_timeout}) {
    body.put(static_cast<std::uint32_t>(timeout.count()));
  }
  body.put(std::uint32_t{request.data});
  return std::move(body).take();
}

std::vector<std::byte> encode(const TaskEnd& end) {
  const std::string_view line = cut_utf8(end.last_line, kMaxLastLineBytes);
  ByteWriter body(kTaskEndHeadBytes + line.size());
  body.put(std::uint32_t{end.exit_code});
  body.put(std::uint32_t{end.signal});
  body.put_bytes(std::as_bytes(std::span(line)));
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, RunTaskRequest& out) {
  ByteReader reader(body);
  RunTaskRequest request;
  bool is_good = true;
  for (std::chrono::seconds* timeout :
       {&request.start, &request.peer, &request.worker, &request.heartbeat_timeout}) {
    *timeout = std::chrono::seconds(reader.get<std::uint32_t>());
    is_good = is_good && is_timeout(*timeout);
  }
  const auto data = reader.get<std::uint32_t>();
  constexpr std::uint32_t kMostData = 255;
  if (!is_good || !reader.complete() || data == 0 || data > kMostData) {
    return WireError::kBadBody;
  }
  request.data = static_cast<std::uint8_t>(data);
  out = request;
  return {};
}

std::error_code decode(std::span<const std::byte> body, TaskEnd& out) {
  ByteReader reader(body);
  const auto exit_code = reader.get<std::uint32_t>();
  const auto signal = reader.get<std::uint32_t>();
  if (!reader.ok() || exit_code > kMostExitCode || signal > kMostSignal ||
      reader.rest().size() > kMaxLastLineBytes) {
    return WireError::kBadBody;
  }
  out = TaskEnd{.exit_code = static_cast<std::uint8_t>(exit_code),
                .signal = static_cast<std::uint8_t>(signal),
                // From another process's log: control characters must not reach this one's.
                .last_line = one_line(text_of(reader.rest()))};
  return {};
}

}  // namespace disttf::net
