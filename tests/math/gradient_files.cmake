# Gradients of models of each kind of layer, in files: PyTorch computes them again, and tests/build/aarch64_test.sh
# checks that other processors compute bit-identical ones.
add_executable(math_gradient_files ${CMAKE_CURRENT_LIST_DIR}/gradient_files.cc)
target_link_libraries(math_gradient_files PRIVATE disttf_flags disttf_math nlohmann_json::nlohmann_json)
if(CMAKE_CROSSCOMPILING)
  target_link_options(math_gradient_files PRIVATE -static)  # this machine has no libraries for it
  set_target_properties(math_gradient_files PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/math)
endif()
