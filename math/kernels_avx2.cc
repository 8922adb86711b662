// The kernels for AVX2 with FMA; math/CMakeLists.txt sets the flags.
#define DISTTF_ISA avx2
#include "math/kernels_impl.inc"
