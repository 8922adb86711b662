#include "net/resolvers/host_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "net/wire/address.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kMaxNumberBytes = 18;  // fits into 64 bits

[[nodiscard]] bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  // With these two checks from_chars() cannot fail, so its result is not examined.
  if (!is_number(text) || text.size() > kMaxNumberBytes) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns `text` up to the first `separator`, and removes both from `text`.
[[nodiscard]] std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

// One range "009-011" of a group.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;
  [[nodiscard]] std::uint64_t count() const { return last - first + 1; }
};

[[nodiscard]] std::string padded(std::uint64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

// Parses a host list.
class HostListReader {
 public:
  HostListReader(std::string_view field, std::string_view text)
      : field_(field), text_(text), rest_(text) {}

  [[nodiscard]] std::vector<std::string> run() {
    std::vector<std::string> names;
    while (true) {
      std::vector<std::string> of_item = read_item();
      // Checked while the list grows, because a few bytes can describe billions of hosts.
      if (names.size() + of_item.size() > kMaxListedHosts) fail_too_many();
      names.insert(names.end(), std::make_move_iterator(of_item.begin()),
                   std::make_move_iterator(of_item.end()));
      if (rest_.empty()) return names;
      rest_.remove_prefix(1);  // the comma
    }
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    throw std::invalid_argument(std::string(field_) + " is " + net::quoted(text_) + "; " +
                                sentence);
  }
  [[noreturn]] void fail_too_many() const {
    fail("it names more than " + std::to_string(kMaxListedHosts) + " hosts");
  }

  // Reads up to a comma outside brackets, or the end.
  [[nodiscard]] std::vector<std::string> read_item() {
    std::vector<std::string> names = {""};
    while (!rest_.empty() && rest_.front() != ',') {
      if (rest_.front() == '[') {
        names = with_group(names, read_group());
      } else {
        append(names, read_text());
      }
    }
    if (names.front().empty()) fail("a host name between commas is empty");
    return names;
  }

  [[nodiscard]] std::string_view read_text() {
    const std::size_t end = std::min(rest_.find_first_of(",[]"), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    if (end < rest_.size() && rest_[end] == ']') fail("a ] has no [");
    rest_.remove_prefix(end);
    return text;
  }

  [[nodiscard]] std::vector<Range> read_group() {
    // Slurm does not nest brackets.
    const std::size_t shut = rest_.find(']');
    if (shut == std::string_view::npos) fail("a [ has no ]");
    std::string_view inside = rest_.substr(1, shut - 1);
    rest_.remove_prefix(shut + 1);
    std::vector<Range> ranges;
    const std::size_t commas = static_cast<std::size_t>(std::ranges::count(inside, ','));
    // Checked before the ranges are stored.
    if (commas >= kMaxListedHosts) fail_too_many();
    for (std::size_t i = 0; i <= commas; ++i) ranges.push_back(read_range(take(inside, ',')));
    return ranges;
  }

  [[nodiscard]] Range read_range(std::string_view text) const {
    const std::string_view whole = text;
    const std::string_view low = take(text, '-');
    const bool single = low.size() == whole.size();
    const std::optional<std::uint64_t> first = parse_number(low);
    const std::optional<std::uint64_t> last = single ? first : parse_number(text);
    if (!first || !last || *last < *first) {
      fail(net::quoted(whole) +
           " between [ and ] is not a number or ascending range like 3 or 09-12");
    }
    // The width of the first number is the width of all: n[009-011] has leading zeros.
    return {*first, *last, low.size()};
  }

  void append(std::vector<std::string>& names, std::string_view text) const {
    for (std::string& name : names) {
      if (name.size() + text.size() > kMaxHostBytes) fail_too_long();
      name += text;
    }
  }

  [[nodiscard]] std::vector<std::string> with_group(const std::vector<std::string>& names,
                                                    const std::vector<Range>& ranges) const {
    std::uint64_t count = 0;
    for (const Range& range : ranges) {
      // Checked one by one: a sum of such numbers could overflow.
      if (range.count() > kMaxListedHosts) fail_too_many();
      count += range.count();
      // The product for all names so far, because several groups multiply.
      if (count * names.size() > kMaxListedHosts) fail_too_many();
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * count);
    for (const std::string& name : names) {
      for (const Range& range : ranges) {
        for (std::uint64_t number = range.first; number <= range.last; ++number) {
          longer.push_back(name + padded(number, range.width));
          if (longer.back().size() > kMaxHostBytes) fail_too_long();
        }
      }
    }
    return longer;
  }

  [[noreturn]] void fail_too_long() const {
    fail("a host name in it is longer than " + std::to_string(kMaxHostBytes) + " bytes");
  }

  std::string_view field_;
  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

std::vector<std::string> expand_host_list(std::string_view field, std::string_view text) {
  return HostListReader(field, text).run();
}

std::vector<std::size_t> expand_task_counts(std::string_view field, std::string_view text) {
  const auto fail = [&](const std::string& sentence) {
    throw std::invalid_argument(std::string(field) + " is " + net::quoted(text) + "; " + sentence);
  };
  std::vector<std::size_t> counts;
  std::string_view rest = text;
  const auto commas = std::ranges::count(text, ',');
  for (std::ptrdiff_t i = 0; i <= commas; ++i) {
    std::string_view item = take(rest, ',');
    const std::string_view whole = item;
    // "2(x3)" stands for 2,2,2.
    const std::optional<std::uint64_t> tasks = parse_number(take(item, '('));
    std::optional<std::uint64_t> nodes = 1;
    if (whole.find('(') != std::string_view::npos) {
      const bool framed = item.starts_with("x") && item.ends_with(")");
      nodes = framed ? parse_number(item.substr(1, item.size() - 2)) : std::nullopt;
    }
    if (!tasks || !nodes || *tasks == 0 || *nodes == 0) {
      fail(net::quoted(whole) + " is not a number of tasks; expected 2, or 2(x3) for three nodes");
    }
    // Before the insertion: a few bytes like 1(x999999999) would otherwise allocate gigabytes.
    if (*tasks > kMaxListedHosts || *nodes > kMaxListedHosts - counts.size()) {
      fail("it counts more than " + std::to_string(kMaxListedHosts) + " nodes or tasks");
    }
    counts.insert(counts.end(), *nodes, *tasks);
  }
  return counts;
}

}  // namespace disttf::net
