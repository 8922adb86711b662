#include "math/tree_sum.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "math/optimizer.h"

namespace disttf::math {
namespace {

// The level of the smallest subtree with room for that many places.
unsigned level_of(std::size_t places) noexcept {
  return places < 2 ? 0U : static_cast<unsigned>(std::bit_width(places - 1));
}

}  // namespace

TreeSum::TreeSum(std::size_t places, std::size_t floats, Isa isa)
    : floats_(floats), isa_(isa), top_(level_of(places)), nodes_(places) {}

void TreeSum::add(std::size_t place, std::span<const float> gradient, std::span<float> own) {
  assert(gradient.size() == floats_ && (own.empty() || own.data() == gradient.data()));
  assert(!nodes_[place].is_there);
  nodes_[place] = {.is_there = true, .level = 0, .values = gradient, .own = own, .buffer = kNone};
  // A gradient is added to its neighbours at once, so that little is left to do when the last one
  // arrives.
  rise(place, 0);
}

// As long as one of its places is missing, no part of the subtree has entered a sum beyond it.
void TreeSum::add_subtree(std::size_t first, std::size_t count, std::span<const float> sum,
                          std::span<float> own) {
  assert(sum.size() == floats_ && (own.empty() || own.data() == sum.data()));
  const unsigned level = level_of(count);
  // A subtree begins at a multiple of its size; the last one may be cut off by the number of
  // places.
  assert(first % (std::size_t{1} << level) == 0 &&
         std::min(first + (std::size_t{1} << level), nodes_.size()) == first + count);
  for (std::size_t each = first; each < first + count; ++each) {
    // Parts of the subtree that have arrived one by one are contained in its sum and must not count
    // twice.
    drop(nodes_[each]);
  }
  nodes_[first] = {.is_there = true, .level = level, .values = sum, .own = own, .buffer = kNone};
  rise(first, level);
}

void TreeSum::rise(std::size_t at, unsigned from) {
  for (unsigned level = from; level < top_; ++level) {
    const std::size_t size = std::size_t{1} << level;
    // The two halves of a subtree differ in this bit alone.
    const std::size_t left = at & ~size;
    const std::size_t right = left + size;
    nodes_[at].level = level;
    if (right >= nodes_.size()) {
      continue;  // so it completes the subtree above as well
    }
    const Node& other = nodes_[at == left ? right : left];
    // The other half is incomplete. It calls rise() itself when it completes, and finds this half.
    if (!other.is_there || other.level != level || level + 1 == top_) {
      return;  // the caller adds the two halves of the whole
    }
    merge(left, right);
    at = left;
  }
}

TreeSum::Halves TreeSum::halves() {
  std::size_t first = 0;
  for (unsigned level = top_; level > 0; --level) {
    if (nodes_[first].is_there && nodes_[first].level >= level) {
      break;
    }
    // Descends until both halves hold something. An empty half is skipped, so the sum has the shape
    // of the tree over the places that are filled.
    const std::size_t size = std::size_t{1} << (level - 1);
    if (!has_any(first, size)) {
      first += size;
    } else if (has_any(first + size, size)) {
      // The last addition is left to the caller, who fuses it with the update and so saves one pass
      // over memory.
      const Node& left = nodes_[gather(first, level - 1)];
      const Node& right = nodes_[gather(first + size, level - 1)];
      return {.sum = left.values, .last = right.values};
    }
  }
  assert(nodes_[first].is_there);
  return {.sum = nodes_[first].values, .last = {}};
}

std::span<const float> TreeSum::whole() { return nodes_[gather(0, top_)].values; }

void TreeSum::clear() noexcept {
  for (Node& node : nodes_) {
    drop(node);
  }
}

void TreeSum::drop(Node& node) noexcept {
  if (node.buffer != kNone) {
    unused_.push_back(node.buffer);
  }
  node = {};
}

// Sums the subtree of that level that begins there; returns the node with the sum, or kNone if it
// is empty.
std::size_t TreeSum::gather(std::size_t first, unsigned level) {
  if (first >= nodes_.size()) {
    return kNone;
  }
  if (nodes_[first].is_there && nodes_[first].level >= level) {
    return first;
  }
  if (level == 0) {
    return kNone;
  }
  const std::size_t left = gather(first, level - 1);
  const std::size_t right = gather(first + (std::size_t{1} << (level - 1)), level - 1);
  // An empty subtree adds nothing, not even 0, which would change -0.
  if (left == kNone || right == kNone) {
    return left == kNone ? right : left;
  }
  merge(left, right);
  return left;
}

bool TreeSum::has_any(std::size_t first, std::size_t count) const noexcept {
  const std::size_t end = std::min(first + count, nodes_.size());
  for (std::size_t each = first; each < end; ++each) {
    if (nodes_[each].is_there) {
      return true;
    }
  }
  return false;
}

// Writes into the memory of one of them, if that may be overwritten.
void TreeSum::merge(std::size_t left, std::size_t right) {
  Node& sum = nodes_[left];
  const Node other = std::exchange(nodes_[right], {});
  if (floats_ == 0) {
    return;
  }
  // Kept before `own` may be replaced. The left operand stays on the left wherever the sum is
  // stored.
  const std::span<const float> values = sum.values;
  if (!sum.own.empty()) {
    if (other.buffer != kNone) {
      unused_.push_back(other.buffer);
    }
  } else if (!other.own.empty()) {
    // The sum goes into the right half's memory, which is free from now on.
    sum.own = other.own;
    sum.buffer = other.buffer;
  } else {
    take_buffer(sum);
  }
  math::add(sum.own, values, other.values, isa_);
  sum.values = sum.own;
}

void TreeSum::take_buffer(Node& node) {
  if (unused_.empty()) {
    buffers_.emplace_back(floats_);
    unused_.reserve(buffers_.size());  // so that returning buffers does not throw
    unused_.push_back(buffers_.size() - 1);
  }
  node.buffer = unused_.back();
  unused_.pop_back();
  node.own = buffers_[node.buffer].span();
}

}  // namespace disttf::math
