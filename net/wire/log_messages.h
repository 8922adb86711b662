// Messages from the primary of a range to its backup, one struct for each kind of frame, as in
// net/wire/messages.h. Bodies: net/wire/replication.h.
//
// FILL, UPDATE, COMPLETE and CONCLUDE are entries of a log, numbered in order; request_id is an
// entry's number. The backup acknowledges each.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/message_fields.h"
#include "net/wire/replication.h"

namespace disttf::net {

// The number of a view, in step and sequence.
template <typename Message>
struct ViewField {
  ViewNumber Message::*member;

  constexpr void write(const Message& message, FrameHeader& header) const noexcept {
    header.step = (message.*member).chief;
    header.sequence = (message.*member).count;
  }
  constexpr bool take(FrameHeader& rest, Message& message) const noexcept {
    const auto count = static_cast<std::uint32_t>(rest.sequence);
    message.*member = {.chief = rest.step, .count = count};
    rest.step = 0;
    // A larger count stays, and is refused: it must not be cut to another view's number.
    rest.sequence -= count;
    return true;
  }
};

// PUBLISH on a replica channel: the primary sends the configuration that follows.
struct PublishToBackup {
  ViewNumber view = {};  // in which it is the primary
  Generation generation = 0;

  // It is no entry of the log, and is not acknowledged.
  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kPublish, ViewField<PublishToBackup>{&PublishToBackup::view},
                 word(&PublishToBackup::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const PublishToBackup&, const PublishToBackup&) = default;
};

// The whole state.
struct Fill {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // that the state is of
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  bool finished = false;  // the run's result: no update follows

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(
        FrameKind::kFill, word(&Fill::entry, &FrameHeader::request_id),
        word(&Fill::step, &FrameHeader::step), word(&Fill::range_begin, &FrameHeader::range_begin),
        word(&Fill::generation, &FrameHeader::generation), flag(&Fill::finished, kFlagFinished));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Fill&, const Fill&) = default;
};

// A sum of gradients that has been applied.
struct Update {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // of the parameters that the gradients were computed from
  std::uint64_t push = 0;         // async: the push's number as its trainer counts
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kUpdate, word(&Update::entry, &FrameHeader::request_id),
                 word(&Update::step, &FrameHeader::step),
                 word(&Update::push, &FrameHeader::sequence),
                 word(&Update::range_begin, &FrameHeader::range_begin),
                 word(&Update::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Update&, const Update&) = default;
};

// From here on nothing is acknowledged that the backup does not have.
struct Complete {
  std::uint64_t entry = 0;
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kComplete, word(&Complete::entry, &FrameHeader::request_id),
                 word(&Complete::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Complete&, const Complete&) = default;
};

// The chief has taken these parameters as the run's result before the last step: no update follows.
struct Conclude {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;  // of the parameters
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kConclude, word(&Conclude::entry, &FrameHeader::request_id),
                 word(&Conclude::step, &FrameHeader::step),
                 word(&Conclude::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Conclude&, const Conclude&) = default;
};

}  // namespace disttf::net
