// An action just before a thread writes to a page, for tests of the moment between two steps of a
// function that offers no callback.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace disttf::net {

// At most one at a time. The first write to the page calls `act` in a signal handler (SIGSEGV), so
// `act` may use only async-signal-safe operations; the write then continues. REQUIRES: only one
// thread writes to the page, and not by a system call.
class WriteTrap {
 public:
  // The page that contains `at`, in a writable mapping.
  WriteTrap(std::byte* at, std::function<void()> act) : page_(page_of(at)), act_(std::move(act)) {
    set_ = this;
    struct sigaction ours {};
    ours.sa_sigaction = &WriteTrap::spring;
    ours.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &ours, &before_), 0);
    EXPECT_EQ(::mprotect(page_.data(), page_.size(), PROT_READ), 0);
  }
  ~WriteTrap() {
    EXPECT_TRUE(is_sprung_) << "no write to the page occurred";
    EXPECT_EQ(::mprotect(page_.data(), page_.size(), PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(::sigaction(SIGSEGV, &before_, nullptr), 0);
    set_ = nullptr;
  }
  WriteTrap(const WriteTrap&) = delete;
  WriteTrap& operator=(const WriteTrap&) = delete;

 private:
  static std::span<std::byte> page_of(std::byte* at) {
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return {at - reinterpret_cast<std::uintptr_t>(at) % size, size};
  }
  // The write is repeated after this returns. A fault of another kind then happens as without a
  // trap.
  static void spring(int /*signal*/, siginfo_t* info, void* /*context*/) {
    const auto* at = static_cast<const std::byte*>(info->si_addr);
    const std::span<std::byte> page = set_->page_;
    if (set_->is_sprung_ || at < page.data() || at >= page.data() + page.size()) {
      ::sigaction(SIGSEGV, &set_->before_, nullptr);
      return;
    }
    set_->is_sprung_ = true;
    set_->act_();
    ::mprotect(page.data(), page.size(), PROT_READ | PROT_WRITE);
  }

  static inline WriteTrap* set_ = nullptr;
  const std::span<std::byte> page_;
  const std::function<void()> act_;
  struct sigaction before_ {};
  volatile bool is_sprung_ = false;
};

}  // namespace disttf::net
