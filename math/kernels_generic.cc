// The kernels for the target's baseline (SSE2 on x86-64); math/CMakeLists.txt sets the flags.
#define DISTTF_ISA generic
#define DISTTF_ISA_EIGEN disttf_eigen_generic
#include "math/kernels_impl.inc"
