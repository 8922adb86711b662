// The kernels for NEON, which every aarch64 has; math/CMakeLists.txt sets the flags.
#define DISTTF_ISA neon
#include "math/kernels_impl.inc"
