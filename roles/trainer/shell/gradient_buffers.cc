#include "roles/trainer/shell/gradient_buffers.h"

#include <utility>

namespace disttf::roles {
namespace {

std::span<float> floats_of(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

void GradientBuffers::prepare(std::unique_ptr<net::GradientMemory> memory, std::size_t size,
                              std::size_t per_step) {
  size_ = size;
  memory_ = std::move(memory);
  room_ = memory_ ? memory_->count() : 0;
  pushed_ = 0;
  // Allocated only if some gradient of a step does not fit into shared memory.
  own_ = math::AlignedVector(per_step <= room_ ? 0 : size_);
  begin();
}

std::span<float> GradientBuffers::begin() {
  // Elastic: a ps may read a gradient until the step is made, so each gets memory of its own.
  current_ = pushed_ < room_ ? floats_of(memory_->gradient(pushed_)) : own_.span();
  return current_;
}

void GradientBuffers::leave_memory() {
  // Without new memory, gradients are sent from here on.
  room_ = memory_->renew() ? memory_->count() : 0;
  if (room_ == 0 && own_.size() == 0) {
    own_ = math::AlignedVector(size_);
  }
}

}  // namespace disttf::roles
