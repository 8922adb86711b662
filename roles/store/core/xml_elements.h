// The elements of a small XML document, as S3 answers with: names and text, no more.
//
// A library of its own would be 100 kB for the ten element names that are looked at here. What is
// not read is refused (a document type, which is where entities that grow come from) or passed over
// (attributes, comments, processing instructions).
//
// Pure; callable from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace disttf::roles {

// Called at the end of each element with the way to it, "ListBucketResult/Contents/Key", and the
// text that lies directly in it.
using OnXmlElement = std::function<void(std::string_view path, const std::string& text)>;

// False: it is not XML of that kind. What was read before that has been told.
[[nodiscard]] bool read_xml(std::string_view document, const OnXmlElement& on_element);

}  // namespace disttf::roles
