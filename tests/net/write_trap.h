// Something that happens just before a thread writes to a page: for what must be tried between two
// steps of a function that has no place to call anybody from.
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

// One at a time. While it is there the first write to a page calls `act` in a signal handler
// (SIGSEGV), so that this may do nothing that is not safe there, and goes on then. REQUIRES: one
// thread alone writes to it, and not by a system call.
class WriteTrap {
 public:
  // The page is the one on which `at` lies, of a mapping that may be written to.
  WriteTrap(std::byte* at, std::function<void()> act) : page_(page_of(at)), act_(std::move(act)) {
    set_ = this;
    struct sigaction ours {};
    ours.sa_sigaction = &WriteTrap::spring;
    ours.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &ours, &before_), 0);
    EXPECT_EQ(::mprotect(page_.data(), page_.size(), PROT_READ), 0);
  }
  ~WriteTrap() {
    EXPECT_TRUE(is_sprung_) << "nobody has written to the page";
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
  // The write is tried again when this returns. A fault of another kind is then as without a trap.
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
