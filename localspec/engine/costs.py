"""What a pass costs on this machine: the time of a target pass by width, and of the draft model's steps.

Measured at load, corrected by every real step. A pass of width w is taken to cost scale * shape(w): the scale follows the
machine (load, heat, a growing context), the shape belongs to the model and its kernels and is kept width by width, cliffs
included. Each observation is split between the two by how uncertain they are (a Kalman filter on the logarithm, with the
cross terms left out), and one that is far off counts little until others agree with it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

MEASURED_WIDTHS = (1, 2, 5, 9, 3, 17, 4, 33, 8, 6, 12)
"""In the order of their use: a measurement that runs out of time has the most telling ones."""

# Variances of logarithms.
_NOISE = 0.06**2
_SCALE_DRIFT = 0.01**2
_SHAPE_DRIFT = 0.001**2
_MEASURED, _GUESSED, _UNKNOWN = 0.05**2, 0.25**2, 5.0**2
_OUTLIER = 3.0
"""Standard deviations beyond which an observation is cut."""
_MOST_DRIFT = 0.1
_AGREEING = 2
"""Outliers of one width, to the same side in a row, that are no accident."""


_LEAST_MS, _MOST_MS = 1e-6, 1e9
"""No pass takes less, or more, whatever a clock says that stands still or was put forward: a logarithm needs a number."""


def _sensible(ms: float) -> float:
    return min(_MOST_MS, max(_LEAST_MS, ms))


@dataclass(slots=True)
class _Shape:
    """Logarithm of the cost of one width relative to the scale, and its variance."""

    value: float
    variance: float
    outliers: int = 0
    """Observations in a row that were far off, counted up or down by their side."""


@dataclass(slots=True)
class CostCurve:
    """Milliseconds of a pass by its width."""

    _shapes: dict[int, _Shape]
    _scale: float = 0.0
    _scale_variance: float = _MEASURED
    _drift: float = 0.0
    """How far passes of other widths have moved the scale since a plain step was last timed."""
    _met: set[int] = field(default_factory=set)
    """The widths of those passes."""
    _cache: dict[int, float] = field(default_factory=dict)

    _plain_ms: float = 0.0
    """The exponential of the scale: this is asked for hundreds of times between two passes."""

    def __post_init__(self) -> None:
        self._plain_ms = math.exp(self._scale)

    @classmethod
    def measured(cls, ms_by_width: Mapping[int, float]) -> "CostCurve":
        """From timings, each the minimum of a few. Needs width 1."""
        ms_by_width = {width: _sensible(ms) for width, ms in ms_by_width.items()}
        plain = ms_by_width[1]
        shapes = {width: _Shape(math.log(ms / plain), _MEASURED) for width, ms in ms_by_width.items()}
        shapes[1] = _Shape(0.0, 0.0)
        return cls(shapes, math.log(plain))

    @classmethod
    def guessed(cls, plain_ms: float = 50.0) -> "CostCurve":
        """Without a measurement: as if each further token cost a quarter of the first, to be corrected soon."""
        curve = cls.measured({1: plain_ms, 2: 1.25 * plain_ms, 33: 9.0 * plain_ms})
        for width, shape in curve._shapes.items():
            shape.variance = 0.0 if width == 1 else _GUESSED
        curve._scale_variance = _UNKNOWN
        return curve

    def ms(self, width: int) -> float:
        """Expected milliseconds of a pass of `width` tokens."""
        shape = self._cache.get(width)
        if shape is None:
            shape = self._cache[width] = math.exp(self._shape(width).value)
        return self._plain_ms * shape

    def table(self) -> dict[int, float]:
        """Milliseconds of every width that has been measured or met."""
        return {width: self.ms(width) for width in sorted(self._shapes)}

    def observe(self, width: int, ms: float) -> None:
        """A real pass took this long."""
        if not (ms > 0.0 and math.isfinite(ms)):
            return
        ms = _sensible(ms)
        shape = self._shapes.get(width)
        if shape is None:
            shape = self._shapes[width] = self._shape(width)
        self._scale_variance += _SCALE_DRIFT
        if width != 1:
            shape.variance += _SHAPE_DRIFT
        surprise = self._tamed(math.log(ms) - self._scale - shape.value, shape)
        spread = self._scale_variance + shape.variance + _NOISE
        moved = surprise * self._scale_variance / spread
        self._scale += moved
        self._plain_ms = math.exp(self._scale)
        shape.value += surprise * shape.variance / spread
        self._scale_variance -= self._scale_variance**2 / spread
        shape.variance -= shape.variance**2 / spread
        if width == 1:
            self._settle(moved)
        else:
            self._drift += moved
            self._met.add(width)
            self._cache.clear()

    @property
    def plain_is_stale(self) -> bool:
        """Whether a plain step has to be timed: passes of other widths have moved the scale so far that it must tell whether
        the change was theirs alone, or the last plain step was far off and awaits a second opinion."""
        return abs(self._drift) > _MOST_DRIFT or self._shapes[1].outliers != 0

    def _settle(self, moved: float) -> None:
        """A plain step has moved the scale: what the other widths were seen to cost since the last one stays as it is."""
        for width in self._met:
            self._shapes[width].value -= moved
        if self._met:
            self._cache.clear()
        self._met.clear()
        self._drift = 0.0

    def _tamed(self, surprise: float, shape: _Shape) -> float:
        """A pause or a swap must not move the curve. When the same width says so again, it is believed: of itself, and a
        plain step of the scale."""
        limit = _OUTLIER * math.sqrt(self._scale_variance + shape.variance + _NOISE)
        if abs(surprise) <= limit:
            shape.outliers = 0
            return surprise
        side = 1 if surprise > 0 else -1
        shape.outliers = shape.outliers + side if shape.outliers * side >= 0 else side
        if abs(shape.outliers) < _AGREEING:
            return side * limit / 3
        shape.outliers = 0
        if shape is self._shapes[1]:
            self._scale_variance = max(self._scale_variance, surprise**2)
        else:
            shape.variance = max(shape.variance, surprise**2)
        return surprise

    def _shape(self, width: int) -> _Shape:
        """The shape of a width: its own, or a straight line between its neighbors' costs."""
        known = self._shapes.get(width)
        if known is not None:
            return known
        below = max((w for w in self._shapes if w < width), default=1)
        above = min((w for w in self._shapes if w > width), default=None)
        low = math.exp(self._shapes[below].value)
        if above is None:
            # Past the last known width every token is taken to cost what it costs there on average.
            return _Shape(math.log(low * width / below), _GUESSED)
        high = math.exp(self._shapes[above].value)
        value = low + (high - low) * (width - below) / (above - below)
        return _Shape(math.log(value), _GUESSED if above - below > 4 else 4 * _MEASURED)


@dataclass(slots=True)
class Costs:
    """The target's passes, and the draft model's."""

    target: CostCurve
    draft: CostCurve | None = None
    """Passes of the draft model: width 1 is one more drafted token, wider ones catch up."""

    @property
    def plain_ms(self) -> float:
        """One token by plain decoding."""
        return self.target.ms(1)

    def draft_ms(self, catch_up: int) -> float:
        """The draft model's first pass, over all the tokens it has not seen."""
        return self.draft.ms(max(1, catch_up)) if self.draft else math.inf
