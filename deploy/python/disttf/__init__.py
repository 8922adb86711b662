"""The clients of disttf: a program of yours computes the gradients of a run (docs/own_program.md).

disttf.torch, disttf.jax, disttf.tensorflow and disttf.numpy each have a function join(). load() reads checkpoints.
Without a framework: docs/program_protocol.md.
"""
import os as _os

from ._version import VERSION as __version__

TYPE_CHECKING = False  # typing's, without importing it: that takes longer than all the rest
if TYPE_CHECKING:
    from ._load import load as load
    from ._protocol import Variable as Variable

__all__ = ["Variable", "__version__", "load"]

if "DISTTF_PROGRAM_FD" in _os.environ:
    from . import _run as _run  # reports exceptions to the task, also those before join()


def __getattr__(name: str) -> object:
    """Imports on first use, so that `import disttf` takes about a millisecond."""
    if name == "load":
        from ._load import load
        return load
    if name == "Variable":
        from ._protocol import Variable
        return Variable
    raise AttributeError("module 'disttf' has no attribute %r" % name)
