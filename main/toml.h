// toml++, as a parser of files that anyone may have written. Its version 3.3 asserts, of some
// characters of a file, what only its next lines check (parse_key() of "[[ [" is one place):
// without NDEBUG such a file aborts the process, with it clang takes the assertion for granted and
// may leave the check out. So its assertions are nothing here, and the checks tell of the file.
#ifndef DISTTF_MAIN_TOML_H_
#define DISTTF_MAIN_TOML_H_

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#endif  // DISTTF_MAIN_TOML_H_
