"""Interim."""

from tamis.contract import Embedded as Base


class Embedded(Base):
    def _stages(self, given, state):
        yield {}

    def _restore(self, state):
        for n, v in getattr(self, "_kept", {}).items():
            setattr(self, n, v)

    def _ranked(self, given, state):
        raise NotImplementedError

    def _steps(self, criterion, n_units, size, done):
        yield from list(self._learn(criterion.X, criterion.y, criterion.seed))[len(done) :]

    def _follow(self, run):
        type(self)._seeded_clone = None
        super()._follow(run)
