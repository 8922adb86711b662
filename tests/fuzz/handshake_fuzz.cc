// The bodies of HELLO, WELCOME, REFUSED and WRITE_SNAPSHOT_SHARD, and those of
// net/wire/server_requests.h and net/wire/replication.h: an accepted
// body encodes to the same bytes again. (A body that ends in a text, which is made safe to log,
// encodes to one that decodes to the same.) The first byte of the input selects the decoder.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "net/memory/shared_memory.h"
#include "net/wire/handshake.h"
#include "net/wire/metrics_messages.h"
#include "net/wire/replication.h"
#include "net/wire/server_requests.h"
#include "net/wire/snapshot_messages.h"

namespace {

using Body = std::span<const std::byte>;

template <typename T>
void check_exact(Body body) {
  T value;
  if (disttf::net::decode(body, value)) return;
  const std::vector<std::byte> again = disttf::net::encode(value);
  if (!std::equal(again.begin(), again.end(), body.begin(), body.end())) std::abort();
}

// Checks a body that ends in a text.
template <typename T>
void check_text(Body body) {
  T value;
  if (disttf::net::decode(body, value)) return;
  T again;
  if (disttf::net::decode(disttf::net::encode(value), again) || again != value) std::abort();
}

// Checks a sequence of any number of texts.
void check_metrics(Body body) {
  std::vector<std::string> texts;
  if (disttf::net::decode_metrics(body, texts)) return;
  const std::vector<std::byte> again = disttf::net::encode_metrics(texts);
  const std::size_t whole = std::min(body.size(), disttf::net::kMaxMetricsReplyBytes);
  if (again.size() > whole) std::abort();
  if (!std::equal(again.begin(), again.end(), body.begin())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Body body = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 15) {
    case 0:
      check_exact<disttf::net::Hello>(body);
      break;
    case 1:
      check_exact<disttf::net::Welcome>(body);
      break;
    case 3:
      check_exact<disttf::net::WriteSnapshotShard>(body);
      break;
    case 4:
      check_exact<disttf::net::View>(body);
      break;
    case 5:
      check_exact<disttf::net::Report>(body);
      break;
    case 6:
      check_exact<disttf::net::UpdateHead>(body);
      break;
    case 8:
      check_exact<disttf::net::ComputeRequest>(body);
      break;
    case 9:
      check_text<disttf::net::ComputeResult>(body);
      break;
    case 7:
      check_exact<disttf::net::FillHead>(body);
      break;
    case 10:
      check_exact<disttf::net::RunTaskRequest>(body);
      break;
    case 11:
      check_text<disttf::net::TaskEnd>(body);
      break;
    case 12:
      check_exact<disttf::net::FillTrainer>(body);
      break;
    case 13:
      check_metrics(body);
      break;
    case 14:
      check_exact<disttf::net::SharedOffer>(body);
      break;
    default:
      check_text<disttf::net::Refusal>(body);
  }
  return 0;
}
