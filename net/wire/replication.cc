#include "net/wire/replication.h"

#include <utility>

#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace disttf::net {
namespace {

// Bits of a Report. New bits need a new wire version, because decode() refuses unknown ones.
constexpr std::uint8_t kHolds = 1U << 0U;
constexpr std::uint8_t kWantsAlone = 1U << 1U;
constexpr std::uint8_t kWantsPair = 1U << 2U;
constexpr std::uint8_t kFinished = 1U << 3U;
constexpr std::uint8_t kPaired = 1U << 4U;
constexpr std::uint8_t kKnownBits = kHolds | kWantsAlone | kWantsPair | kFinished | kPaired;

void put(ByteWriter& body, const ViewNumber& number) {
  body.put(number.chief);
  body.put(number.count);
}

ViewNumber get_view_number(ByteReader& reader) {
  ViewNumber number;
  number.chief = reader.get<std::uint64_t>();
  number.count = reader.get<std::uint32_t>();
  return number;
}

}  // namespace

std::vector<std::byte> encode(const View& view) {
  ByteWriter body(kViewBytes);
  put(body, view.number);
  body.put(view.primary);
  body.put(static_cast<std::uint8_t>(view.paired ? 1 : 0));
  body.put(std::uint16_t{0});
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, View& out) {
  ByteReader reader(body);
  View view;
  view.number = get_view_number(reader);
  view.primary = reader.get<std::uint8_t>();
  const auto paired = reader.get<std::uint8_t>();
  const auto reserved = reader.get<std::uint16_t>();
  // Values outside their range are refused instead of truncated, so an error of the sender is
  // noticed.
  if (!reader.complete() || view.primary > 1 || paired > 1 || reserved != 0) {
    return WireError::kBadBody;
  }
  view.paired = paired == 1;
  out = view;
  return {};
}

std::vector<std::byte> encode(const Report& report) {
  unsigned bits = report.holds ? kHolds : 0U;
  bits |= report.wants_alone ? kWantsAlone : 0U;
  bits |= report.wants_pair ? kWantsPair : 0U;
  bits |= report.finished ? kFinished : 0U;
  bits |= report.paired ? kPaired : 0U;
  ByteWriter body(kReportBytes);
  put(body, report.view);
  body.put(static_cast<std::uint8_t>(report.replica_role));
  body.put(static_cast<std::uint8_t>(bits));
  body.put(std::uint16_t{0});
  body.put(report.trainers);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, Report& out) {
  ByteReader reader(body);
  Report report;
  report.view = get_view_number(reader);
  const auto replica_role = reader.get<std::uint8_t>();
  const auto bits = reader.get<std::uint8_t>();
  const auto reserved = reader.get<std::uint16_t>();
  report.trainers = reader.get<std::uint64_t>();
  if (!reader.complete() || replica_role > static_cast<std::uint8_t>(ReplicaRole::kBackup) ||
      (bits & ~kKnownBits) != 0 || reserved != 0) {
    return WireError::kBadBody;
  }
  report.replica_role = static_cast<ReplicaRole>(replica_role);
  report.holds = (bits & kHolds) != 0;
  report.wants_alone = (bits & kWantsAlone) != 0;
  report.wants_pair = (bits & kWantsPair) != 0;
  report.finished = (bits & kFinished) != 0;
  report.paired = (bits & kPaired) != 0;
  out = report;
  return {};
}

std::vector<std::byte> encode(const UpdateHead& head) {
  ByteWriter body(sizeof(std::uint64_t) * (1 + head.trainers.size()));
  body.put(head.incarnation);
  for (const std::uint64_t ranks : head.trainers) {
    body.put(ranks);
  }
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, UpdateHead& out) {
  ByteReader reader(body);
  UpdateHead head;
  head.incarnation = reader.get<std::uint64_t>();
  bool is_empty = true;
  while (reader.ok() && !reader.rest().empty()) {
    head.trainers.push_back(reader.get<std::uint64_t>());
    is_empty = is_empty && head.trainers.back() == 0;
  }
  // An update without any trainer would be a step that no gradient caused.
  if (!reader.complete() || is_empty) {
    return WireError::kBadBody;
  }
  out = std::move(head);
  return {};
}

std::vector<std::byte> encode(const FillHead& head) {
  ByteWriter body(kFillHeadBytes);
  body.put(head.lineage);
  for (const std::uint64_t counter : head.counters) {
    body.put(counter);
  }
  body.put(head.trainers);
  body.put(head.tensors);
  // Reserved; must be zero until a version defines it.
  body.put(std::uint64_t{0});
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, FillHead& out) {
  ByteReader reader(body);
  FillHead head;
  head.lineage = reader.get<std::uint64_t>();
  for (std::uint64_t& counter : head.counters) {
    counter = reader.get<std::uint64_t>();
  }
  head.trainers = reader.get<std::uint32_t>();
  head.tensors = reader.get<std::uint32_t>();
  const auto reserved = reader.get<std::uint64_t>();
  if (!reader.complete() || reserved != 0) {
    return WireError::kBadBody;
  }
  out = head;
  return {};
}

std::vector<std::byte> encode(const FillTrainer& trainer) {
  ByteWriter body(kFillTrainerBytes);
  body.put(trainer.incarnation);
  body.put(trainer.last_sequence);
  body.put(trainer.clock);
  body.put(trainer.used);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, FillTrainer& out) {
  ByteReader reader(body);
  FillTrainer trainer;
  trainer.incarnation = reader.get<std::uint64_t>();
  trainer.last_sequence = reader.get<std::uint64_t>();
  trainer.clock = reader.get<std::uint64_t>();
  trainer.used = reader.get<std::uint64_t>();
  if (!reader.complete()) {
    return WireError::kBadBody;
  }
  out = trainer;
  return {};
}

}  // namespace disttf::net
