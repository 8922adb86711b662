// toml++, for files from untrusted sources. Version 3.3 asserts properties of a file that only its
// next lines check (parse_key() of "[[ [" is one case). Without NDEBUG such a file aborts the
// process; with it clang assumes the assertion and may drop the check. So TOML_ASSERT is empty
// here, and the checks report the error.
#ifndef DISTTF_MAIN_TOML_H_
#define DISTTF_MAIN_TOML_H_

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#endif  // DISTTF_MAIN_TOML_H_
