// Per-connection state of a ps, by connection id. It is one sorted vector and not a tree, because a
// ps looks up about a thousand connections in turn and a vector keeps their ids together in memory.
// Ids only grow, so a new one is appended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "roles/ps/core/outbox.h"

namespace disttf::roles {

// A value keeps its address until it is erased.
template <typename Value>
class ConnectionMap {
 public:
  struct Entry {
    ConnectionId first;
    std::unique_ptr<Value> value;
  };
  // Iterates over pairs of an id and a reference, in the order of ids.
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
  // Inserts a default-constructed value if there is none.
  Value& operator[](ConnectionId id) {
    auto at = place_of(id);
    if (at == entries_.end() || at->first != id) {
      at = entries_.insert(at, Entry{.first = id, .value = std::make_unique<Value>()});
    }
    return *at->value;
  }
  // Does nothing if there is a value already.
  template <typename... Arguments>
  void emplace(ConnectionId id, Arguments&&... arguments) {
    const auto at = place_of(id);
    if (at == entries_.end() || at->first != id) {
      entries_.insert(
          at, Entry{.first = id,
                    .value = std::make_unique<Value>(std::forward<Arguments>(arguments)...)});
    }
  }
  // Throws std::out_of_range if there is none.
  [[nodiscard]] Value& at(ConnectionId id) {
    const iterator found = find(id);
    if (found == end()) {
      throw std::out_of_range("no such connection");
    }
    return found->second;
  }
  void erase(iterator at) { entries_.erase(at.at_); }
  // Returns the number of erased values: 1 or 0.
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
