// Messages from the primary of a range to its backup, one struct for each kind of frame, as in
// net/wire/messages.h. Bodies: net/wire/replication.h.
//
// FILL, UPDATE, COMPLETE and CONCLUDE are entries of a log, numbered in order; request_id is an
// entry's number. The backup acknowledges each.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/frame.h"
#include "net/wire/replication.h"

namespace disttf::net {

// PUBLISH on a replica channel: the primary sends the configuration that follows.
struct PublishToBackup {
  ViewNumber view = {};  // in which it is the primary
  Generation generation = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const PublishToBackup&, const PublishToBackup&) = default;
};

// The whole state.
struct Fill {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // that the state is of
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  bool finished = false;  // the run's result: no update follows

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Fill&, const Fill&) = default;
};

// A sum of gradients that has been applied.
struct Update {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // of the parameters that the gradients were computed from
  std::uint64_t push = 0;         // async: the push's number as its trainer counts
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Update&, const Update&) = default;
};

// From here on nothing is acknowledged that the backup does not have.
struct Complete {
  std::uint64_t entry = 0;
  Generation generation = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Complete&, const Complete&) = default;
};

// The chief has taken these parameters as the run's result before the last step: no update follows.
struct Conclude {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;  // of the parameters
  Generation generation = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Conclude&, const Conclude&) = default;
};

}  // namespace disttf::net
