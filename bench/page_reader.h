// Acts like a browser that shows the page of a run: it reads the stream of updates until the stream
// ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace disttf::bench {

class PageReader {
 public:
  // Chooses a port on 127.0.0.1 that is free now, and tries to read there from then on.
  PageReader();
  ~PageReader();
  PageReader(const PageReader&) = delete;
  PageReader& operator=(const PageReader&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // Bytes of the stream so far.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void read();
  bool read_once();  // returns false if no server listens there yet

  std::uint16_t port_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace disttf::bench
