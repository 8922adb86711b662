// Gives each label its index among the words of a block (RowBlock::words).
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

class BlockWords {
 public:
  // `words` must outlive this.
  explicit BlockWords(std::vector<std::string>& words) : words_(words) {}
  std::uint32_t place_of(std::string_view word) {
    if (last_ < words_.size() && words_[last_] == word) {
      return last_;
    }
    const auto found = std::ranges::find(words_, word);
    last_ = static_cast<std::uint32_t>(found - words_.begin());
    if (found == words_.end()) {
      words_.emplace_back(word);
    }
    return last_;
  }

 private:
  std::vector<std::string>& words_;
  std::uint32_t last_ = 0;
};

}  // namespace disttf::data
