#include "math/convolution_products.h"

#include <algorithm>

namespace disttf::math {
namespace {

// Length of a row of the kernel, which is contiguous in the image as well.
std::size_t kernel_row(const ConvolutionShape& shape) noexcept {
  return shape.kernel_width * shape.channels;
}

// The number of values that a position sees: the columns of the matrix.
std::size_t depth_of(const ConvolutionShape& shape) noexcept {
  return shape.kernel_height * kernel_row(shape);
}

std::size_t rows_of_block(const ConvolutionShape& shape) noexcept {
  // A function of the shape alone: the blocks, and so the order of a gradient's additions, are the
  // same for any number of threads.
  const std::size_t floats = shape.out_width * depth_of(shape);
  return std::clamp<std::size_t>(kMostMatrixFloats / floats, 1, shape.out_height);
}

std::size_t matrix_floats(const ConvolutionShape& shape) noexcept {
  return rows_of_block(shape) * shape.out_width * depth_of(shape);
}

// Copies columns [begin, end) of the matrix of the positions in rows [first, last) of the output.
void gather(const float* image, const ConvolutionShape& shape, std::size_t first, std::size_t last,
            std::size_t begin, std::size_t end, float* to) noexcept {
  const std::size_t run = kernel_row(shape);
  const std::size_t image_row = shape.width * shape.channels;
  for (std::size_t y = first; y < last; ++y) {
    for (std::size_t x = 0; x < shape.out_width; ++x) {
      const float* const seen =
          image + y * shape.stride * image_row + x * shape.stride * shape.channels;
      for (std::size_t column = begin; column < end;) {
        // Copies as much of a kernel's row as the range contains; that part is contiguous in the
        // image.
        const std::size_t i = column / run;
        const std::size_t count = std::min(end, (i + 1) * run) - column;
        to = std::copy_n(seen + i * image_row + (column - i * run), count, to);
        column += count;
      }
    }
  }
}

}  // namespace

std::size_t convolution_scratch_floats(const ConvolutionShape& shape) noexcept {
  // For the products, the matrix, and the gradient of one block.
  return kProductScratchFloats + matrix_floats(shape) + depth_of(shape) * shape.units;
}

void convolve(const Products& products, const float* image, const float* weights,
              const float* start, float* output, const ConvolutionShape& shape,
              float* scratch) noexcept {
  const std::size_t depth = depth_of(shape);
  const std::size_t most = rows_of_block(shape);
  float* const matrix = scratch + kProductScratchFloats;
  for (std::size_t y = 0; y < shape.out_height; y += most) {
    const std::size_t rows = std::min(most, shape.out_height - y);
    gather(image, shape, y, y + rows, 0, depth, matrix);
    products.product(matrix, weights, output + y * shape.out_width * shape.units,
                     {.rows = rows * shape.out_width, .columns = shape.units, .depth = depth},
                     start, scratch);
  }
}

void convolve_gradient(const Products& products, const float* image, const float* delta,
                       float* gradient, std::size_t begin, std::size_t end,
                       const ConvolutionShape& shape, float* scratch) noexcept {
  const std::size_t most = rows_of_block(shape);
  float* const matrix = scratch + kProductScratchFloats;
  float* const of_block = matrix + matrix_floats(shape);
  float* const sums = gradient + begin * shape.units;
  for (std::size_t y = 0; y < shape.out_height; y += most) {
    const std::size_t rows = std::min(most, shape.out_height - y);
    gather(image, shape, y, y + rows, begin, end, matrix);
    // product_at() overwrites its result, so each block has its own and is added below.
    products.product_at(
        matrix, delta + y * shape.out_width * shape.units, of_block,
        {.rows = end - begin, .columns = shape.units, .depth = rows * shape.out_width}, scratch);
    for (std::size_t i = 0; i < (end - begin) * shape.units; ++i) {
      sums[i] += of_block[i];
    }
  }
}

}  // namespace disttf::math
