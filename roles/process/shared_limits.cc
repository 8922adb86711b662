#include "roles/process/shared_limits.h"

#include "net/transport/answer_slot.h"
#include "net/transport/shared_memory.h"

namespace disttf::roles {
namespace {

std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + net::kPageBytes - 1) / net::kPageBytes * net::kPageBytes;
}

}  // namespace

std::size_t most_shared_by_trainer(std::size_t floats) noexcept {
  return whole_pages(floats * sizeof(float)) + net::kPageBytes;
}

std::size_t most_shared_by_ps(std::size_t floats, std::size_t trainers) noexcept {
  return (2 + trainers) * whole_pages(floats * sizeof(float)) + trainers * net::kAnswerSlotBytes;
}

}  // namespace disttf::roles
