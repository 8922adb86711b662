// The hot path of requests: 784 numbers of JSON.
#include <algorithm>
#include <limits>

#include "roles/serve/core/rows.h"

namespace disttf::roles {
namespace {

// Reads a nested array of numbers. Its sizes are those of its first elements; the others must
// agree.
class TensorReader {
 public:
  TensorReader(JsonReader& reader, Rows& rows) : reader_(reader), rows_(rows) {
    // Not 0, which is the size of an empty array.
    dims_.sizes.fill(kUnknown);
  }

  Dims read() {
    read_level(0);
    for (std::size_t& size : dims_.sizes) {
      size = size == kUnknown ? 0 : size;
    }
    return dims_;
  }

 private:
  static constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

  void read_level(std::size_t level) {
    if (level == Dims::kMaxRank) {
      reader_.fail("a tensor has at most " + std::to_string(Dims::kMaxRank) + " levels");
    }
    std::size_t count = 0;
    if (reader_.enter_array()) {
      if (reader_.peek() == JsonKind::kArray) {
        count = read_arrays(level);
      } else {
        note_rank(level + 1);
        do {
          // Directly into the rows: no tree of JSON values is built.
          rows_.add(reader_.number());
          ++count;
        } while (reader_.next_element());
      }
    } else {
      // An empty array above the deepest level agrees with the rank found before it.
      note_rank(std::max(dims_.rank, level + 1));
    }
    std::size_t& size = dims_.sizes[level];
    if (size != kUnknown && size != count) {
      reader_.fail("sibling arrays have " + std::to_string(size) + " and " + std::to_string(count) +
                   " elements");
    }
    size = count;
  }

  std::size_t read_arrays(std::size_t level) {
    std::size_t count = 0;
    do {
      read_level(level + 1);
      ++count;
    } while (reader_.next_element());
    return count;
  }

  void note_rank(std::size_t rank) {
    if (dims_.rank != 0 && dims_.rank != rank) {
      reader_.fail("numbers are nested to different depths");
    }
    dims_.rank = rank;
  }

  JsonReader& reader_;
  Rows& rows_;
  Dims dims_;
};

}  // namespace

Dims read_tensor(JsonReader& reader, Rows& rows) { return TensorReader(reader, rows).read(); }

}  // namespace disttf::roles
