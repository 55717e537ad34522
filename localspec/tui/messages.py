"""What the engine's thread tells the screen. Every event of an answer carries the number of its turn."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from localspec.engine.step import Finish, Step


@dataclass(frozen=True, slots=True)
class Fetching:
    """The starter model is on its way."""

    phase: str
    """ "downloading" or "unpacking"."""
    done: int
    total: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Loading:
    """A model is being loaded."""

    what: str
    """ "target" or "draft"."""
    share: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Questions can be answered from now on."""

    target: str
    draft: str | None
    """The models' names."""
    context_length: int
    """Tokens."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    """How an answer is sampled that asks for nothing of its own, by the names of settings."""
    recommended: Collection[str] = ()
    """Those of them that are as the model's file recommends."""
    note: str = ""
    """What was reduced so that it fits into the memory: a sentence, empty where nothing was."""
    loading: int = field(default=0, compare=False)
    """Which loading of the worker it was."""


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """There is no model to talk to; EngineWorker.reload tries again."""

    sentence: str
    loading: int = field(default=0, compare=False)
    """As in Loaded."""
    died: bool = field(default=False, compare=False)
    """Whether the process died that was loading."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The prompt is being read."""

    turn: int
    done: int
    total: int
    """Tokens."""
    at: float
    """Seconds, of time.perf_counter."""
    left_out: int = 0
    """Messages, the oldest ones, that the model does not read because the context is full."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """One target pass of the answer."""

    turn: int
    step: Step
    at: float
    """Seconds, of time.perf_counter."""
    context_used: int
    """Tokens of the conversation."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer is complete, or was stopped."""

    turn: int
    finish: Finish | None


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The answer was stopped before its first word: there is none."""

    turn: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer could not be begun, or broke off."""

    turn: int
    sentence: str
    begun: bool
    """Whether a part of the answer is there."""
    gone: bool = False
    """Whether the engine has died; EngineGone, which comes once, says the same."""


@dataclass(frozen=True, slots=True)
class EngineGone:
    """The engine has died, in the middle of an answer or not. Comes once; nothing is answered until EngineWorker.reload."""

    sentence: str


Event = Fetching | Loading | Loaded | LoadFailed | Reading | Stepped | Answered | TakenBack | Failed | EngineGone
