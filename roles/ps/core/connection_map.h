// What a ps keeps of each of its connections, by id: in one piece, as a thousand of them are looked
// up in turns, and a tree would lie all over the memory. Ids grow, so a new one goes to the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "roles/ps/core/outbox.h"

namespace disttf::roles {

// A value stays where it is until it is erased.
template <typename Value>
class ConnectionMap {
 public:
  struct Entry {
    ConnectionId first;
    std::unique_ptr<Value> value;
  };
  // Goes over pairs of an id and a reference, in the order of ids.
  template <typename Base, typename Reference>
  class Iterator {
   public:
    struct Pair {
      ConnectionId first;
      Reference second;
      const Pair* operator->() const noexcept { return this; }
    };
    explicit Iterator(Base at) : at_(at) {}
    Pair operator*() const { return {at_->first, *at_->value}; }
    Pair operator->() const { return **this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class ConnectionMap;
    Base at_;
  };
  using Entries = std::vector<Entry>;
  using iterator = Iterator<typename Entries::iterator, Value&>;
  using const_iterator = Iterator<typename Entries::const_iterator, const Value&>;

  [[nodiscard]] iterator begin() { return iterator(entries_.begin()); }
  [[nodiscard]] iterator end() { return iterator(entries_.end()); }
  [[nodiscard]] const_iterator begin() const { return const_iterator(entries_.begin()); }
  [[nodiscard]] const_iterator end() const { return const_iterator(entries_.end()); }

  [[nodiscard]] iterator find(ConnectionId id) {
    const auto at = place_of(id);
    return iterator(at != entries_.end() && at->first == id ? at : entries_.end());
  }
  [[nodiscard]] bool contains(ConnectionId id) { return find(id) != end(); }
  // Made, where there is none.
  Value& operator[](ConnectionId id) {
    auto at = place_of(id);
    if (at == entries_.end() || at->first != id) {
      at = entries_.insert(at, Entry{.first = id, .value = std::make_unique<Value>()});
    }
    return *at->value;
  }
  // As it is, where there is one already.
  template <typename... Arguments>
  void emplace(ConnectionId id, Arguments&&... arguments) {
    const auto at = place_of(id);
    if (at == entries_.end() || at->first != id) {
      entries_.insert(
          at, Entry{.first = id,
                    .value = std::make_unique<Value>(std::forward<Arguments>(arguments)...)});
    }
  }
  // Throws std::out_of_range.
  [[nodiscard]] Value& at(ConnectionId id) {
    const iterator found = find(id);
    if (found == end()) {
      throw std::out_of_range("no such connection");
    }
    return found->second;
  }
  void erase(iterator at) { entries_.erase(at.at_); }
  // How many there were: 1, or 0.
  std::size_t erase(ConnectionId id) {
    const iterator at = find(id);
    if (at == end()) {
      return 0;
    }
    erase(at);
    return 1;
  }
  void clear() noexcept { entries_.clear(); }

 private:
  typename Entries::iterator place_of(ConnectionId id) {
    return std::ranges::lower_bound(entries_, id, {}, &Entry::first);
  }

  Entries entries_;
};

}  // namespace disttf::roles
