"""Device profiles: what passes cost on machines that are not this one, from published points, each with its source.

Times are in units of the target's own plain step: what matters for a policy is only their ratio.
"""

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """A device with a pair of models on it."""

    name: str
    source: str
    points: tuple[tuple[int, float], ...]
    """(width, time of a target pass), rising in width."""
    draft_step: float
    """Time of one pass of the draft model."""
    draft_token: float
    """What each further token of a catch-up pass adds."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths with a published point."""
        return tuple(width for width, _ in self.points)

    def target_ms(self, width: int) -> float:
        """Time of a target pass: a straight line between the points, and on from the last two."""
        widths = self.widths
        at = min(max(bisect_left(widths, width), 1), len(widths) - 1)
        (low, below), (high, above) = self.points[at - 1], self.points[at]
        return below + (above - below) * (width - low) / (high - low)

    def draft_ms(self, width: int) -> float:
        """Time of a pass of the draft model."""
        return self.draft_step + self.draft_token * (width - 1)


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "cuda",
            "RTX-class GPU, 7B to 34B quantized target: llama.cpp 5625 (A100, Q8_0: 1.07, 1.28, 1.72 at 2, 4, 8; a cliff "
            "at 9) and llama.cpp 29110 (RTX 3090: 1.09 at 2); past 9 the matrix kernel is flat",
            ((1, 1.0), (2, 1.08), (3, 1.18), (5, 1.42), (9, 2.3), (17, 2.46), (33, 2.8)),
            0.10,
            0.01,
        ),
        Profile(
            "mlx",
            "MLX 0.32 on an M4 Pro: 1.14 to 1.57 at 4, 1.73 to 2.69 at 8 (Rapid-MLX 2195)",
            ((1, 1.0), (2, 1.15), (3, 1.35), (5, 1.7), (9, 2.6), (17, 3.0), (33, 3.8)),
            0.10,
            0.01,
        ),
        Profile(
            "cpu",
            "2 AVX2 cores, Q8_0 target of 0.94 GB made from SmolLM2-135M with identity blocks (our own measurement)",
            (
                (1, 1.0),
                (2, 1.42),
                (3, 1.70),
                (4, 1.69),
                (5, 1.96),
                (6, 2.10),
                (8, 2.36),
                (9, 2.59),
                (12, 3.58),
                (16, 5.3),
                (33, 11.0),
            ),
            0.08,
            0.02,
        ),
        Profile(
            "metal",
            "llama.cpp's Metal back end, M4 Pro, q4_0: 1.81, 3.8, 7.4 at 2, 4, 8; past 8 a matrix kernel is flat",
            ((1, 1.0), (2, 1.81), (3, 2.8), (5, 5.6), (9, 8.0), (17, 8.0), (33, 8.4)),
            0.08,
            0.02,
        ),
    )
}
"""By name."""
