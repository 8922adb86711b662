# cmake -D NM=nm -D OBJECT=file.o -D ISA=avx2 -P kernels_symbols_test.cmake
#
# Fails when an object compiled for one instruction set defines a symbol that another object could
# define too: one that does not carry the set's own namespace in its name. The linker keeps one
# copy of such an inline function for the whole program; were it this one, the program would die
# of an illegal instruction on a CPU without the set.
execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${OBJECT}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
set(own 0)
set(shared "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" name "${line}")
  # Mangled names give every namespace with its length before it: 4avx2, 17disttf_eigen_avx2.
  string(LENGTH "${ISA}" isa_length)
  string(LENGTH "disttf_eigen_${ISA}" eigen_length)
  if(name MATCHES "6disttf4math${isa_length}${ISA}" OR name MATCHES "${eigen_length}disttf_eigen_${ISA}")
    math(EXPR own "${own} + 1")
  else()
    string(APPEND shared "\n  ${line}")
  endif()
endforeach()
if(own EQUAL 0)
  message(FATAL_ERROR "${OBJECT} defines no symbol of ${ISA}: is this the right object?")
endif()
if(shared)
  message(FATAL_ERROR "${OBJECT} defines symbols outside the namespaces of ${ISA}:${shared}")
endif()
message(STATUS "${own} symbols, all of ${ISA}")
