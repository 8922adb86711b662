#include "roles/run/outcome.h"

#include <new>

namespace disttf::roles {

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Failure& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return {kError, kNoMemory};
  } catch (const std::exception& error) {
    return {kError, error.what()};
  }
}

}  // namespace disttf::roles
