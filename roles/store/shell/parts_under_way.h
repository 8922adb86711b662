// The parts of a large object, some of which are sent at once: one connection is waiting most of
// the time.
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
  // Sends the part of that number, from 1 on, and returns what the store calls it. Called by
  // several threads at once.
  using Send = std::function<std::string(std::size_t number, std::span<const std::byte> bytes)>;

  explicit PartsUnderWay(Send send) : send_(std::move(send)) {}
  ~PartsUnderWay() { wait(); }
  PartsUnderWay(const PartsUnderWay&) = delete;
  PartsUnderWay& operator=(const PartsUnderWay&) = delete;

  // Copies the bytes. Throws what the sending of an earlier part threw.
  void add(std::span<const std::byte> bytes);
  // What the store calls the parts, in their order. The same.
  [[nodiscard]] const std::vector<std::string>& finish();
  // For those that are under way, whatever becomes of them.
  void wait() noexcept;
  // How many parts there have been.
  [[nodiscard]] std::size_t count() const noexcept { return names_.size() + under_way_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  // Its thread writes the name and the error, and whoever joins it reads them.
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
  std::vector<std::string> names_;  // of the parts that are there
  std::uint64_t bytes_ = 0;
};

}  // namespace disttf::roles
