#include "run/process/buffered_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <utility>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

// A pipe with room accepts this many bytes atomically (PIPE_BUF), so that lines of several
// processes do not mix.
constexpr std::size_t kOutputPiece = 4096;
// The interval of polling for room: a pipe of 64 KiB read that often carries 13 MB/s.
constexpr std::chrono::milliseconds kLookAgain{5};

constexpr std::string_view kRowUp = "\x1b[A";
constexpr std::string_view kEraseBelow = "\x1b[J";  // from the cursor to the end of the screen

std::size_t terminal_columns(int fd) noexcept {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : kUsual;
}

// Blocks signals in the thread, so that others of the process take them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// If no thread can be started, the interval of attempts to write at the end.
constexpr std::chrono::milliseconds kTryAgain{200};

}  // namespace

BufferedSink::BufferedSink(int fd, std::size_t most_bytes, LeftOut left_out)
    : fd_(fd), most_bytes_(most_bytes), left_out_(std::move(left_out)) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    is_lost_ = true;
    why_lost_ = errno;
  } else if (S_ISSOCK(status.st_mode)) {
    way_ = Way::kSocket;
  } else if (S_ISFIFO(status.st_mode) || isatty(fd) == 1) {
    // Opened again, so that O_NONBLOCK does not affect other processes with this descriptor.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    second_ =
        data::FileDescriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    way_ = second_.number() >= 0 ? Way::kSecondOpened : Way::kByThread;
  }
}

BufferedSink::~BufferedSink() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      // Under the mutex: the thread cannot test the flag just before and then miss the
      // notification.
      is_ending_ = true;
    }
    // The thread waits either for room or for lines; these two wake it from both.
    done_->interrupt();
    changed_.notify_all();
    thread_.join();
  }
}

ssize_t BufferedSink::put(std::string_view text) const {
  text = text.substr(0, kOutputPiece);
  ssize_t count = 0;
  do {
    // A socket needs no second descriptor: MSG_DONTWAIT holds for one call, and not for other
    // processes.
    count = way_ == Way::kSocket ? send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : ::write(way_ == Way::kSecondOpened ? second_.number() : fd_,
                                           text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  return count;
}

// Returns whether nothing is buffered and writing is not left to the thread. REQUIRES: the mutex is
// held.
bool BufferedSink::is_idle() const {
  return begun_.empty() && next_.empty() && way_ != Way::kByThread;
}

// A terminal that has become narrower has wrapped the line into several rows, and the cursor is in
// the last one.
std::string BufferedSink::erase_live() {
  const std::size_t drawn = std::exchange(drawn_, 0);
  if (drawn == 0) {
    return {};
  }
  std::string text = "\r";
  const std::size_t columns = terminal_columns(fd_);
  for (std::size_t row = columns; row < drawn; row += columns) {
    text += kRowUp;
  }
  return text.append(kEraseBelow);
}

std::string BufferedSink::draw_live() {
  if (live_.empty()) {
    return {};
  }
  // The last column stays free: a character there may wrap.
  const std::string_view shown = net::cut_utf8(live_, terminal_columns(fd_) - 1);
  drawn_ = shown.size();
  return std::string(shown);
}

// REQUIRES: is_idle().
void BufferedSink::begin(std::string text) {
  begun_ = std::move(text);
  put_kept();
  start_thread();  // for the rest of it, if any
}

void BufferedSink::set_live_line(std::string line) {
  const std::scoped_lock lock(mutex_);
  live_ = std::move(line);
  if (!is_lost_ && is_idle() && (drawn_ != 0 || !live_.empty())) {
    std::string text = erase_live();
    begin(text.append(draw_live()));
  }
}

void BufferedSink::write(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  if (line.empty()) {
    return;
  }
  if (is_lost_) {
    error_ = error_ != 0 ? error_ : why_lost_;
    return;
  }
  std::string text = erase_live().append(line);
  if (is_idle()) {
    // The live line is part of the same write, so that both appear at once.
    const std::size_t size = text.append(draw_live()).size();
    begun_ = std::move(text);
    put_kept();
    // A part of it is out, so the rest must follow, and can no longer be dropped.
    if (begun_.size() < size) {
      start_thread();  // for the rest of it, if any
      return;
    }
    // Nothing could be written: buffer the line, without the live line behind it.
    text = std::exchange(begun_, {});
    text.resize(size - std::exchange(drawn_, 0));
  }
  next_bytes_ += text.size();
  next_.push_back(std::move(text));
  trim();
  start_thread();
}

std::error_code BufferedSink::failure() const {
  const std::scoped_lock lock(mutex_);
  return {error_, std::generic_category()};
}

std::size_t BufferedSink::kept() const {
  const std::scoped_lock lock(mutex_);
  return begun_.size() + next_bytes_;
}

bool BufferedSink::drain(net::Deadline deadline) {
  const auto is_done = [this] { return begun_.empty() && next_.empty(); };
  std::unique_lock lock(mutex_);
  while (!is_done()) {
    start_thread();  // memory for it may have been short before
    const auto now = net::Clock::now();
    if (now >= deadline) {
      return false;
    }
    changed_.wait_until(lock, std::min(deadline, now + kTryAgain), is_done);
  }
  return true;
}

void BufferedSink::trim() {
  // The oldest lines go first. The newest stays even if it alone is too long.
  while (next_bytes_ > most_bytes_ && next_.size() > 1) {
    next_bytes_ -= next_.front().size();
    next_.pop_front();
    ++omitted_;
  }
}

// Returns false if there is none. REQUIRES: the line before is written, and there is room.
bool BufferedSink::take_next() {
  if (omitted_ > 0) {
    // The lines that were dropped are older than those in next_, so the notice comes first.
    begun_ = left_out_(std::exchange(omitted_, 0));
  } else if (!next_.empty()) {
    begun_ = std::move(next_.front());
    next_.pop_front();
    next_bytes_ -= begun_.size();
  }
  return !begun_.empty();
}

// Returns false if nothing more can be written now.
bool BufferedSink::account(ssize_t count) {
  if (count >= 0) {
    begun_.erase(0, static_cast<std::size_t>(count));
    return count > 0;
  }
  // A short pause of the reader, no error.
  if (errno == EAGAIN) {
    return false;
  }
  // Only the first error is reported: later ones are its consequences, or the same again.
  const int error = errno;
  error_ = error_ != 0 ? error_ : error;
  begun_.clear();
  if (way_ != Way::kAsItIs) {  // a disk may have room again
    is_lost_ = true;
    why_lost_ = error;
    next_.clear();
    next_bytes_ = 0;
  }
  return false;
}

void BufferedSink::put_kept() {
  while (!begun_.empty() || take_next()) {
    if (!account(put(begun_))) {
      break;
    }
  }
}

// Without a thread, for lack of memory or descriptors, the lines wait for the next one.
void BufferedSink::start_thread() {
  if (begun_.empty() && next_.empty()) {
    return;
  }
  if (thread_.joinable()) {
    changed_.notify_all();
    return;
  }
  try {
    // A new thread inherits the mask.
    const SignalsBlocked blocked;
    // Made only now, since most processes never need it: it takes a descriptor.
    done_ = std::make_unique<net::Interrupt>();
    thread_ = std::thread([this] { work_on(); });
  } catch (const std::exception&) {
    put_kept();
  }
}

// Lack of memory for a line is not fatal: there may be some later.
void BufferedSink::work_on() {
  while (true) {
    try {
      work();
      return;
    } catch (const std::exception&) {
      done_->wait_until(net::Clock::now() + kLookAgain);
    }
  }
}

// Runs until the object is destroyed.
void BufferedSink::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !begun_.empty() || !next_.empty(); });
    lock.unlock();
    // Without the mutex, so that a reader that has stopped does not stop the process's other
    // threads.
    await_room();
    lock.lock();
    if (is_ending_) {
      return;
    }
    if (way_ != Way::kByThread) {
      put_kept();
    } else if (!begun_.empty() || take_next()) {
      // Only this thread changes begun_ in this mode, since the sink is never idle: writers append
      // to next_. So the mutex can be free while it writes.
      const std::string piece = begun_.substr(0, kOutputPiece);
      lock.unlock();
      const ssize_t count = put(piece);  // may block after all: another process was faster
      lock.lock();
      static_cast<void>(account(count));
    }
    changed_.notify_all();
    if (!begun_.empty()) {
      lock.unlock();  // a terminal may report room and accept nothing
      done_->wait_until(net::Clock::now() + kLookAgain);
      lock.lock();
    }
  }
}

void BufferedSink::await_room() const {
  static_cast<void>(net::wait_for(fd_, POLLOUT, *done_, net::Deadline::max()));
}

}  // namespace disttf::roles
