"""Options of variables by their names: patterns as of shells."""
import fnmatch
from typing import Iterable, Mapping, Optional


class Options:
    """no_decay: patterns of variables without weight decay. rates: pattern to factor of the learning rate; the first
    that matches applies. statistics: name to momentum, of running statistics."""

    def __init__(self, no_decay: Iterable[str] = (), rates: Optional[Mapping[str, float]] = None,
                 statistics: Optional[Mapping[str, float]] = None) -> None:
        self._no_decay = [no_decay] if isinstance(no_decay, str) else list(no_decay)
        self._rates = dict(rates or {})
        self._statistics = dict(statistics or {})

    def decays(self, name: str) -> bool:
        return name not in self._statistics and not any(fnmatch.fnmatchcase(name, each) for each in self._no_decay)

    def rate_factor(self, name: str) -> float:
        return next((rate for each, rate in self._rates.items() if fnmatch.fnmatchcase(name, each)), 1.0)

    def momentum(self, name: str) -> Optional[float]:
        return self._statistics.get(name)

    def check(self, names: Iterable[str]) -> None:
        """Raises ValueError for a pattern that matches no variable."""
        known = list(names)
        for each in [*self._no_decay, *self._rates, *self._statistics]:
            if not any(fnmatch.fnmatchcase(name, each) for name in known):
                raise ValueError("no variable's name matches %r; there are %s" % (each, ", ".join(known[:8])))
