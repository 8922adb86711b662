#include "storage/store/core/xml_elements.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "text/shown_text.h"

namespace disttf::roles {
namespace {

// S3's answers have four levels.
constexpr std::size_t kMaxXmlDepth = 16;

// Appends the character of an entity: "amp", "#x41".
bool append_entity(std::string& text, std::string_view name) {
  if (name == "amp") return text += '&', true;
  if (name == "lt") return text += '<', true;
  if (name == "gt") return text += '>', true;
  if (name == "quot") return text += '"', true;
  if (name == "apos") return text += '\'', true;
  if (!name.starts_with('#')) return false;
  name.remove_prefix(1);
  const bool is_hex = name.starts_with('x');
  if (is_hex) name.remove_prefix(1);
  std::uint32_t point = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, point, is_hex ? 16 : 10);
  if (error != std::errc{} || stop != end || point == 0 || point > 0x10FFFF) return false;
  append_utf8(text, point);
  return true;
}

class XmlDocument {
 public:
  XmlDocument(std::string_view rest, const OnXmlElement& on_element)
      : rest_(rest), on_element_(on_element) {}

  bool read() {
    while (!rest_.empty()) {
      if (rest_.front() == '<' ? !read_markup() : !read_text()) return false;
    }
    // An answer that is cut off has open elements.
    return open_.empty() && has_root_;
  }

 private:
  struct Open {
    std::size_t path_size;  // of the enclosing elements' path
    std::string name;
    std::string text;
  };

  // Takes the text before `mark`, and the mark. False: there is none.
  bool take_until(std::string_view mark, std::string_view& taken) {
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) return false;
    taken = rest_.substr(0, end);
    rest_.remove_prefix(end + mark.size());
    return true;
  }

  // Takes the rest of a tag, and its ">". Attributes are skipped; their values, in quotes, may
  // contain ">". False: the tag has no end.
  bool take_tag(std::string_view& inside) {
    std::size_t at = rest_.find_first_of(">\"'");
    while (at != std::string_view::npos && rest_[at] != '>') {
      const std::size_t end = rest_.find(rest_[at], at + 1);
      at = end == std::string_view::npos ? end : rest_.find_first_of(">\"'", end + 1);
    }
    if (at == std::string_view::npos) return false;
    inside = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return true;
  }

  // Outside the root, only blanks and a byte order mark are allowed.
  bool read_text() {
    const std::string_view text = rest_.substr(0, rest_.find('<'));
    rest_.remove_prefix(text.size());
    if (open_.empty())
      return text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string_view::npos;
    std::string& to = open_.back().text;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '&') {
        to += text[i];
        continue;
      }
      // Only the predefined entities and numbers: without document types no others can exist.
      const std::size_t end = text.find(';', i);
      if (end == std::string_view::npos || !append_entity(to, text.substr(i + 1, end - i - 1))) {
        return false;
      }
      i = end;
    }
    return true;
  }

  bool read_markup() {
    std::string_view inside;
    if (rest_.starts_with("<!--")) return take_until("-->", inside);
    if (rest_.starts_with("<?")) return take_until("?>", inside);
    // A document type, or CDATA, which S3 does not send.
    if (rest_.starts_with("<!")) return false;
    rest_.remove_prefix(1);
    if (!take_tag(inside) || inside.empty()) return false;
    if (inside.front() == '/') return close(inside.substr(1));
    const bool is_empty = inside.back() == '/';
    if (is_empty) inside.remove_suffix(1);
    const std::string_view name = inside.substr(0, inside.find_first_of(" \t\r\n"));
    if (name.empty() || (open_.empty() && has_root_) || open_.size() >= kMaxXmlDepth) return false;
    has_root_ = true;
    open_.push_back({.path_size = path_.size(), .name = std::string(name), .text = {}});
    if (!path_.empty()) path_ += '/';
    path_ += name;
    // "<a/>" is closed at once, like "<a></a>".
    return !is_empty || close(name);
  }

  bool close(std::string_view name) {
    name = name.substr(0, name.find_first_of(" \t\r\n"));
    if (open_.empty() || open_.back().name != name) return false;
    on_element_(path_, open_.back().text);
    path_.resize(open_.back().path_size);
    open_.pop_back();
    return true;
  }

  std::string_view rest_;
  const OnXmlElement& on_element_;
  std::string path_;
  std::vector<Open> open_;
  bool has_root_ = false;
};

}  // namespace

bool read_xml(std::string_view document, const OnXmlElement& on_element) {
  return XmlDocument(document, on_element).read();
}

}  // namespace disttf::roles
