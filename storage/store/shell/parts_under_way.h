// The parts of a large object, several of which are sent at once, since a single connection mostly
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace disttf::roles {

// Used by one thread.
class PartsUnderWay {
 public:
  // Sends a part, numbered from 1, and returns the store's identifier for it. Called by several
  // threads at once.
  using Send = std::function<std::string(std::size_t number, std::span<const std::byte> bytes)>;

  explicit PartsUnderWay(Send send) : send_(std::move(send)) {}
  ~PartsUnderWay() { wait(); }
  PartsUnderWay(const PartsUnderWay&) = delete;
  PartsUnderWay& operator=(const PartsUnderWay&) = delete;

  // Copies the bytes. Rethrows the error of an earlier part.
  void add(std::span<const std::byte> bytes);
  // The store's identifiers of the parts, in order. Rethrows likewise.
  [[nodiscard]] const std::vector<std::string>& finish();
  // Waits for the parts being sent, and ignores their errors.
  void wait() noexcept;
  // The number of parts so far, including those that failed: the store may have some of these.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  // Its thread writes name and error; the thread that joins it reads them.
  struct Part {
    std::vector<std::byte> bytes;
    std::size_t number = 0;
    std::string name{};
    std::exception_ptr error{};
    std::thread thread{};
  };

  void join_oldest();

  const Send send_;
  std::deque<std::unique_ptr<Part>> under_way_;
  std::vector<std::string> names_;  // of the finished parts
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace disttf::roles
