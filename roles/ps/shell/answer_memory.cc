#include "roles/ps/shell/answer_memory.h"

#include <system_error>
#include <utility>

#include "roles/process/machine.h"

namespace disttf::roles {

std::shared_ptr<AnswerMemory> AnswerMemory::create(std::size_t arena_floats, std::size_t trainers) {
  const std::size_t size = arena_floats * sizeof(float) + trainers * net::kAnswerSlotBytes;
  std::error_code error;  // whatever it is, frames will do
  auto memory = net::SharedMemory::create(size, random_incarnation(), error);
  return memory ? std::shared_ptr<AnswerMemory>(new AnswerMemory(std::move(memory), arena_floats))
                : nullptr;
}

Arena AnswerMemory::arena() {
  return {.floats = {reinterpret_cast<float*>(memory_->bytes().data()), arena_floats_},
          .owner = shared_from_this()};
}

}  // namespace disttf::roles
