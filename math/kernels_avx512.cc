// The kernels for AVX-512 (F, DQ, BW, VL) with FMA; math/CMakeLists.txt sets the flags.
#define DISTTF_ISA avx512
#include "math/kernels_impl.inc"
