// A buffered, lossy sink for lines, whose reader may pause: `disttf ... | less`, Ctrl-S on a
// terminal. Writers never wait for the reader. What the reader does not accept is buffered, and
// written by a separate thread once the reader goes on. Beyond a bound the oldest buffered lines
// are dropped, and a line reports their number.
//
// An inherited descriptor shares its flags with other processes, so O_NONBLOCK is never set on it:
// pipes and terminals are opened a second time, and for sockets each call has a flag. If the second
// open fails, or there is no /proc, the thread does all writing.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "data/file.h"
#include "net/waiting/interrupt.h"

namespace disttf::roles {

class BufferedSink {
 public:
  static constexpr std::size_t kKeepAll = std::numeric_limits<std::size_t>::max();
  // Returns the line, with its newline, that replaces this many lines.
  using LeftOut = std::function<std::string(std::uint64_t lines)>;

  // `fd` is borrowed. At most `most_bytes` are buffered, and the newest line however long it is.
  BufferedSink(int fd, std::size_t most_bytes, LeftOut left_out);
  ~BufferedSink();  // drops the buffered lines
  BufferedSink(const BufferedSink&) = delete;
  BufferedSink& operator=(const BufferedSink&) = delete;

  // Writes a whole line, with its newline. If there is no reader any more, or the disk is full, it
  // is lost.
  void write(std::string_view line);
  // On a terminal: sets the line below all others, which is erased before each write() and drawn
  // again after it, whichever thread writes. It is cut to the terminal's width. Empty: none. Not
  // drawn while lines are buffered.
  void set_live_line(std::string line);
  // Returns the buffered bytes.
  [[nodiscard]] std::size_t kept() const;
  // Returns why a written line was lost; no error if none was. Lines dropped because of
  // `most_bytes` do not count.
  [[nodiscard]] std::error_code failure() const;
  // Waits until all lines are written, or cannot be. Returns false if that is not so before the
  // deadline.
  bool drain(net::Deadline deadline);

 private:
  enum class Way : std::uint8_t {
    kAsItIs,        // a file: its disk does not pause like a reader
    kSecondOpened,  // with O_NONBLOCK
    kSocket,
    kByThread,
  };
  [[nodiscard]] ssize_t put(std::string_view text) const;
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::string erase_live();
  [[nodiscard]] std::string draw_live();
  void begin(std::string text);
  void trim();
  [[nodiscard]] bool take_next();
  [[nodiscard]] bool account(ssize_t count);
  void put_kept();
  void start_thread();
  void work_on();
  void work();
  void await_room() const;

  // Constant.
  const int fd_;  // borrowed
  const std::size_t most_bytes_;
  const LeftOut left_out_;
  data::FileDescriptor second_;  // kSecondOpened
  Way way_ = Way::kAsItIs;
  std::unique_ptr<net::Interrupt> done_;  // once the thread runs

  mutable std::mutex mutex_;  // guards all below; never held while waiting for the reader
  std::condition_variable changed_;
  std::string live_;              // the live line as set
  std::size_t drawn_ = 0;         // columns of it on the terminal; 0: not drawn
  std::string begun_;             // the rest of the line being written
  std::uint64_t omitted_ = 0;     // dropped lines before the next one
  std::deque<std::string> next_;  // whole lines
  std::size_t next_bytes_ = 0;    // of all of them
  bool is_lost_ = false;          // there is no reader any more
  int why_lost_ = 0;              // errno, if is_lost_
  int error_ = 0;                 // errno of the first write that lost something
  bool is_ending_ = false;
  std::thread thread_;  // started with the first buffered line
};

}  // namespace disttf::roles
