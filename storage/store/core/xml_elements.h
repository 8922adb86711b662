// Reads the elements of a small XML document, such as S3's answers: names and text only.
//
// libexpat would replace 85 of these lines and add 149 kB to the executable, of which 172 kB are
// left before its limit. Document types, which can define exploding entities, are rejected;
// attributes, comments and processing instructions are ignored.
//
// Pure; callable from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace disttf::roles {

// Called at the end of each element with its path, "ListBucketResult/Contents/Key", and the text
// directly in it.
using OnXmlElement = std::function<void(std::string_view path, const std::string& text)>;

// False: malformed. Elements before the error have been reported.
[[nodiscard]] bool read_xml(std::string_view document, const OnXmlElement& on_element);

}  // namespace disttf::roles
