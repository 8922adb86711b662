#include "run/outcome.h"

#include <new>

namespace disttf::roles {

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Failure& failure) {
    return failure;
    // Before its base class, whose what() would be "std::bad_alloc".
  } catch (const std::bad_alloc&) {
    return {kError, kNoMemory};
  } catch (const std::exception& error) {
    return {kError, error.what()};
  }
}

}  // namespace disttf::roles
