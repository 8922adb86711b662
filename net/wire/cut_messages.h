// What the chief says to a ps about cuts, one struct for each kind of frame, as net/wire/messages.h
// has those of trainers. A cut has a name: the number of the push that asked for it. The body of
// WRITE_CUT: net/wire/write_cut.h.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/frame.h"

namespace disttf::net {

// GET_CUT, or FIND_CUT.
struct CutRequest {
  std::uint64_t request_id = 0;
  std::uint64_t name = 0;
  bool now = false;           // of the state as it is: it is made first, and named so
  bool with_tensors = false;  // GET_CUT; else its step is all that is wanted
  Generation generation = 0;  // that the state is of

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const CutRequest&, const CutRequest&) = default;
};

// CUT, the answer to either, and to WATCH.
struct CutReply {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the state
  std::uint64_t name = 0;
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  bool is_result = false;  // WATCH: the run is over, and this is its result

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const CutReply&, const CutReply&) = default;
};

// WATCH: an evaluator wants the range's parameters as they are evaluated (their averages, where the
// run has these), once they are those of `step` or of a later one, or the run is over. The answer,
// a CUT, may take as long. One that comes meanwhile takes its place.
struct Watch {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const Watch&, const Watch&) = default;
};

// WRITE_CUT: the ps is to write its range of the cut into its own directory.
struct WriteCutRequest {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // the checkpoint's
  std::uint64_t name = 0;
  Generation generation = 0;

  [[nodiscard]] FrameHeader to_header() const noexcept;
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept;
  friend bool operator==(const WriteCutRequest&, const WriteCutRequest&) = default;
};

}  // namespace disttf::net
