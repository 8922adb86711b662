// Lines to a descriptor whose reader may pause: `disttf ... | less`, Ctrl-S on a terminal. Whoever
// writes never waits for the reader. What that does not take is kept, and written by a thread of
// the object's own once it goes on; beyond a bound the oldest lines that are kept are left out, and
// their number is said in their place.
//
// A descriptor that was inherited shares its flags with other processes, so O_NONBLOCK is never set
// on it: pipes and terminals are opened a second time, sockets are asked with each call. Where the
// second opening is not allowed, or there is no /proc, all writing is left to the thread.
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
#include "net/transport/interrupt.h"

namespace disttf::roles {

class PatientOutput {
 public:
  static constexpr std::size_t kKeepAll = std::numeric_limits<std::size_t>::max();
  // What is written in place of so many lines, with its end.
  using LeftOut = std::function<std::string(std::uint64_t lines)>;

  // `fd` is borrowed. At most `most_bytes` are kept, and the newest line however long it is.
  PatientOutput(int fd, std::size_t most_bytes, LeftOut left_out);
  ~PatientOutput();  // what is kept is lost
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // A whole line, with its end. Where nobody reads any more, or the disk is full, it is lost.
  void write(std::string_view line);
  // On a terminal: the line below all others, which is erased before each write() and drawn again
  // behind it, whichever thread writes. It is cut to the terminal's width. Empty: none. Not drawn
  // while lines are kept for a reader.
  void set_live_line(std::string line);
  // What is kept, in bytes.
  [[nodiscard]] std::size_t kept() const;
  // Why something that was written was lost; no error: nothing was. Lines that most_bytes left out
  // do not count.
  [[nodiscard]] std::error_code failure() const;
  // Waits until all is written, or cannot be. False: not before the deadline.
  bool drain(net::Deadline deadline);

 private:
  enum class Way : std::uint8_t {
    kAsItIs,        // a file: its disk is not a reader
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
  const int fd_;  // the borrowed one
  const std::size_t most_bytes_;
  const LeftOut left_out_;
  data::FileDescriptor second_;  // kSecondOpened
  Way way_ = Way::kAsItIs;
  std::unique_ptr<net::Interrupt> done_;  // once the thread runs

  mutable std::mutex mutex_;  // guards all below; nobody waits for the reader while he has it
  std::condition_variable changed_;
  std::string live_;              // the live line, as it was set
  std::size_t drawn_ = 0;         // columns of it that are on the terminal; 0: it is not there
  std::string begun_;             // what is left of the line that is being written
  std::uint64_t omitted_ = 0;     // lines, before the next one
  std::deque<std::string> next_;  // whole lines
  std::size_t next_bytes_ = 0;    // of all of them
  bool is_lost_ = false;          // nobody reads any more
  int why_lost_ = 0;              // errno, where is_lost_
  int error_ = 0;                 // errno of the first write that has lost something
  bool is_ending_ = false;
  std::thread thread_;  // from the first line on that is kept
};

}  // namespace disttf::roles
