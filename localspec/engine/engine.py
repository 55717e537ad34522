"""The engine: one loaded pair, one token stream, what was read before is not read again."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from localspec.engine.chain import Chain
from localspec.engine.compatibility import common_vocabulary
from localspec.engine.context_length import context_length
from localspec.engine.cores import performance_cores
from localspec.engine.costs import MEASURED_WIDTHS, CostCurve, Costs
from localspec.engine.drafters.base import Drafter
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.place import PlaceLookup, Span
from localspec.engine.errors import ContextFullError, Interrupted, UserError
from localspec.engine.fixed import Fixed
from localspec.engine.generate import Loop, Request
from localspec.engine.gguf import GgufHeader, inspect
from localspec.engine.llama import Context, ContextSettings, LoadCancelledError, Model, devices, version
from localspec.engine.measuring import DRAFT_WIDTHS, Kept, load_kept, measure, save_curve
from localspec.engine.opened import opened_as
from localspec.engine.options import DEFAULT_LENGTHS, LONGEST_DRAFT, VERIFICATIONS, Options
from localspec.engine.policy import Chooser, Policy, Session
from localspec.engine.sampling import Sampler
from localspec.engine.saved_state import Cache, ModelFile, read_caches, write_caches
from localspec.engine.shortlist import DraftSampler
from localspec.engine.step import Finish, Step, closing_step
from localspec.engine.stop import Stop

__all__ = ["DEFAULT_LENGTHS", "VERIFICATIONS", "Engine", "EngineSettings", "LoadProgress", "Options", "PromptProgress"]

_DRAFT_BATCH = 256

LoadProgress = Callable[[str, float], bool | None]
"""Called with what is loading ("target", "draft") and the share done, 0 to 1; returning False cancels."""
PromptProgress = Callable[[int, int], None]
"""Called with the prompt tokens read so far and their number."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which models to load and how."""

    target: Path
    draft: Path | None = None
    context_length: int | None = None
    """Tokens; None: what the model was trained with, at most DEFAULT_CONTEXT, 8192."""
    gpu_layers: int = -1
    """Layers on the GPU, -1 for all."""
    threads: int | None = None
    kv_type: str = "f16"
    measure_costs: bool = False
    """Time passes of every width at load (a second or two) rather than learn what they cost while answering."""
    cost_file: Path | None = None
    """Where measured costs are kept."""
    measure_anew: bool = False
    """Time them although they are kept."""
    measure_seconds: float = 2.0
    """How long that may take. Widths for which there is no time are estimated until they are met."""
    note: str = ""
    """A sentence for the person: what of these was reduced to fit into the memory. Empty where nothing was."""


class Engine:
    """A target, perhaps a draft model, and the caches of one conversation. One thread at a time, but for `stop`."""

    def __init__(self, settings: EngineSettings, progress: LoadProgress | None = None) -> None:
        """Load the pair. Raises ModelError with one sentence; nothing stays loaded then."""
        started = time.perf_counter()
        self.settings = settings
        self.target: Model
        self.draft: Model | None = None
        self._opened: list[Model | Context] = []
        try:
            self._open(settings, progress)
        except BaseException:
            self.close()
            raise
        self._stream: list[int] = []
        self._stop = Stop()
        """Of the last answer."""
        self._answers = 0
        # Reentrant: a signal handler may stop the code that holds it.
        self._turn = threading.RLock()
        self.load_seconds = time.perf_counter() - started
        self.prompt_seconds = 0.0
        """Reading the last prompt."""
        self.prompt_tokens = 0
        self.reused_tokens = 0
        """How many tokens of the last prompt were in the cache already."""
        self.seed = 0
        """The seed of the last answer, given or drawn."""

    def _open(self, settings: EngineSettings, progress: LoadProgress | None) -> None:
        target = inspect(settings.target)
        draft = inspect(settings.draft) if settings.draft else None
        length = context_length(target, draft, settings.context_length)
        files = [ModelFile(header) for header in (target, draft) if header]
        self.target = self._load(target, "target", progress)
        if draft:
            self.draft = self._load(draft, "draft", progress)
            common = common_vocabulary(self.target.vocabulary, self.draft.vocabulary)
        self._context = self._context_of(self.target, length, 512, 1 + LONGEST_DRAFT, settings.kv_type)
        self._lookup = PlaceLookup(self.target.vocabulary.piece)
        self._drafters: dict[str, Drafter] = {self._lookup.name: self._lookup}
        self._draft_model: DraftModel | None = None
        self._draft_context: Context
        if self.draft:
            # The draft's cache stays at full precision: a quantized one costs acceptance.
            self._draft_context = self._context_of(self.draft, self._context.length, _DRAFT_BATCH, 1, "f16")
            self._draft_model = DraftModel(self._draft_context, common)
            self._drafters[self._draft_model.name] = self._draft_model
        self._contexts = [item for item in self._opened if isinstance(item, Context)]
        self._caches = [Cache(*each) for each in zip(("target", "draft"), self._contexts, files, strict=False)]
        self.opened = opened_as(files[0], self._context.settings, settings.gpu_layers)
        """Of the target: which files, how they are run, by which build on which devices. Empty where that is not known."""
        self.costs_measured: float | None = None
        """When the target's passes were timed, in seconds since 1970; None where they were not, or nobody knows."""
        costs = Costs(self._curve(self._context, MEASURED_WIDTHS, progress))
        if self._draft_model:
            costs.draft = self._curve(self._draft_context, DRAFT_WIDTHS, progress)
        self._session = Session(Chain(costs, self._lookup, self._draft_model))

    def _curve(self, context: Context, widths: Sequence[int], progress: LoadProgress | None) -> CostCurve:
        """What passes of a context cost: known from before, or measured now, or guessed and corrected by use."""
        settings, model = self.settings, context.model
        devices_ = "+".join(device.name for device in devices())
        threads = settings.threads or performance_cores()
        key = "/".join(
            (model.path.name, str(model.bytes), devices_, f"gpu{settings.gpu_layers}", f"threads{threads}",
             context.settings.kv_type, version())
        )  # fmt: skip
        known = None if settings.measure_anew else load_kept(settings.cost_file, key)
        if known or not settings.measure_costs:
            return self._dated(context, known)
        cancelled = False

        def report(share: float) -> bool:
            nonlocal cancelled
            cancelled = progress is not None and progress("costs", share) is False
            return not cancelled

        ms_by_width = measure(context, widths, settings.measure_seconds, report)
        if cancelled:
            # Half a measurement is not worth keeping.
            raise LoadCancelledError
        return self._dated(context, save_curve(settings.cost_file, key, ms_by_width))

    def _dated(self, context: Context, known: Kept | None) -> CostCurve:
        if context is self._context and known:
            self.costs_measured = known.measured
        return known.curve if known else CostCurve.guessed()

    @property
    def costs(self) -> Costs:
        """What passes cost on this machine, as known now."""
        return self._session.chain.costs

    def simulate(self, target_ms: Callable[[int], float], draft_ms: Callable[[int], float]) -> None:
        """Take the tokens from here and the time from elsewhere: from now on a pass of a model takes what these say for its
        width, and reading a prompt takes none. What has been learned so far is forgotten."""
        widths = range(1, LONGEST_DRAFT + 2)
        costs = Costs(CostCurve.measured({width: target_ms(width) for width in widths}))
        self._context.pass_ms, self._context.busy_seconds = target_ms, 0.0
        if self._draft_model:
            costs.draft = CostCurve.measured({width: draft_ms(width) for width in widths})
            self._draft_context.pass_ms, self._draft_context.busy_seconds = draft_ms, 0.0
        self._lookup = PlaceLookup(self.target.vocabulary.piece)
        self._lookup.observe(self._stream)
        self._drafters[self._lookup.name] = self._lookup
        self._session = Session(Chain(costs, self._lookup, self._draft_model))

    @property
    def context_length(self) -> int:
        """Tokens the conversation can have."""
        return self._context.length

    @property
    def stream(self) -> Sequence[int]:
        """The tokens of the conversation so far."""
        return self._stream

    @property
    def target_context(self) -> Context:
        """The target's cache."""
        return self._context

    def generate(
        self,
        prompt: Sequence[int],
        options: Options,
        on_prompt: PromptProgress | None = None,
        chooser: Callable[[Session], Chooser] | None = None,
        documents: Sequence[Span] = (),
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        """Answer a prompt given as token ids; yields a Step for each target pass. `chooser` makes another policy than the
        one that the options ask for, once the drafters have followed the prompt. `documents`: which tokens of the prompt are
        texts that the answer may copy or edit, as (start, end), the one that it most likely does last.

        What the prompt has in common with the conversation so far is not read again. Raises ContextFullError when the
        prompt does not fit, UserError when the options ask for a drafter that is not loaded. `stop`, whenever it is
        asked for, ends it with a last step; dropping the iterator is fine too.
        """
        stop = stop or Stop()
        loop = self._begin(prompt, options, chooser, documents, stop)
        answer = self._answers
        with stop.ending(lambda: self._interrupt(answer)):
            started = time.perf_counter()
            try:
                self._read_prompt(options, on_prompt, stop)
            except Interrupted:
                yield closing_step(Finish.INTERRUPTED)
                return
            finally:
                self.prompt_seconds = time.perf_counter() - started
            yield from loop.run()

    def stop(self) -> None:
        """End the answer under way, from any thread or signal handler. What has been emitted stays.

        An answer that has not begun knows nothing of it: whoever may be early gives `generate` a Stop instead."""
        self._stop.ask()

    def interrupt(self) -> None:
        """End the pass under way and all later ones, from any thread, until the next answer begins."""
        for context in self._contexts:
            context.interrupt()

    def save_state(self, path: Path, most: int | None = None, unwanted: Callable[[], bool] | None = None) -> int:
        """Keep the caches in a file, between two answers or two steps. Returns its bytes, 0 where none was written: it would
        be larger than `most`, it could not be (that is logged), or `unwanted`, asked every 8 MB, said so."""
        if self._draft_model and self._stream:
            # Drafted tokens that were refused are dropped here, where every memory still can.
            self._draft_model.read(0)
        return write_caches(path, self._caches, most, unwanted)

    def load_state(self, path: Path) -> int:
        """Put the caches back as a file has them. Returns how many tokens the target has evaluated then, 0 where the file is
        not used; a prompt that begins with other tokens is read from there on, as always."""
        self._answers += 1
        self._stream.clear()
        for drafter in self._drafters.values():
            drafter.rewind(0)
        return read_caches(path, self._caches)

    def close(self) -> None:
        """Free everything, contexts before their models. Safe to call twice."""
        while self._opened:
            self._opened.pop().close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _load(self, header: GgufHeader, what: str, progress: LoadProgress | None) -> Model:
        report = (lambda share: progress(what, share)) if progress else None
        model = Model(header.path, header=header, gpu_layers=self.settings.gpu_layers, progress=report)
        self._opened.append(model)
        return model

    def _context_of(self, model: Model, length: int, batch: int, rows: int, kv_type: str) -> Context:
        settings = ContextSettings(
            length=length, batch=batch, rows=rows, threads=self.settings.threads, kv_type=kv_type
        )
        context = Context(model, settings)
        self._opened.append(context)
        return context

    def _begin(
        self,
        prompt: Sequence[int],
        options: Options,
        chooser: Callable[[Session], Chooser] | None,
        documents: Sequence[Span],
        stop: Stop,
    ) -> Loop:
        """Put everything at the beginning of an answer."""
        self._check(prompt, options)
        with self._turn:
            self._stop, self._answers = stop, self._answers + 1
            for context in self._contexts:
                context.resume()
        answer = self._answers
        self.seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4))
        self._follow(prompt)
        self._lookup.begin(documents, options.rewrites)
        sampler = self._sampler(self.target, options)
        sampler.begin(prompt)
        if self._draft_model and self.draft:
            greedy = options.sampling.greedy
            sampled = options.resolved_verification == "rejection" and not greedy
            drafting = Drafting.SAMPLED if sampled else Drafting.COUPLED
            self._draft_model.begin(self._sampler(self.draft, options), drafting, self.seed, greedy)
        return Loop(
            target=self._context,
            sampler=sampler,
            policy=chooser(self._session) if chooser else self._chooser(options),
            drafters=tuple(self._drafters.values()),
            codec=self.target.vocabulary,
            request=Request(self.seed, options.max_tokens, options.stop, options.logprobs),
            stream=self._stream,
            # An older answer that somebody still holds must not write on in the stream of this one.
            stopping=lambda: stop.asked or self._answers != answer,
        )

    def _interrupt(self, answer: int) -> None:
        """End the passes of this answer, and of no later one."""
        with self._turn:
            if self._answers == answer:
                self.interrupt()

    def _chooser(self, options: Options) -> Chooser:
        length = options.resolved_draft_max
        if options.drafter == "auto":
            return Policy(self._session, length)
        return Fixed(self._drafters.get(options.drafter), length)

    def _check(self, prompt: Sequence[int], options: Options) -> None:
        if not prompt:
            raise UserError("The prompt is empty; write something to answer.")
        if len(prompt) > self._context.length:
            raise ContextFullError(
                f"The prompt has {len(prompt)} tokens and the context holds {self._context.length}; "
                "shorten the text, or choose a larger --ctx."
            )
        if options.drafter == "draft" and not self._draft_model:
            raise UserError("No draft model is loaded; name one with --draft, or choose --drafter lookup.")

    def _sampler(self, model: Model, options: Options) -> Sampler:
        kind = DraftSampler if model is self.draft else Sampler
        # The penalties of the draft model see the target's tokens, and the target may have more padding.
        return kind(options.sampling, max(model.vocabulary.size, self.target.vocabulary.size))

    def _follow(self, prompt: Sequence[int]) -> None:
        """Let the drafters and the target's cache keep what the prompt shares with the stream so far."""
        shared = _common_length(self._stream, prompt)
        for drafter in self._drafters.values():
            drafter.rewind(shared)
            drafter.observe(prompt[shared:])
        del self._stream[shared:]
        self._stream.extend(prompt[shared:])
        # The last token of the prompt is always evaluated again: its row is where the answer begins.
        cached = _common_length(self._context.tokens, prompt[:-1])
        self.reused_tokens = self._context.truncate(cached)
        self.prompt_tokens = len(prompt)

    def _read_prompt(self, options: Options, on_prompt: PromptProgress | None, stop: Stop) -> None:
        """Evaluate all but the last token of the prompt, without any logits, a batch at a time: with the target, and then
        with the draft model where one will be asked."""
        end = len(self._stream) - 1
        total = len(self._stream)
        draft = self._reader(options)
        if draft:
            # What the caches share with the prompt is known before anything is reported.
            draft.read(0)
        contexts = (self._context, self._draft_context) if draft else (self._context,)

        def before_a_batch() -> None:
            if stop.asked:
                raise Interrupted
            if on_prompt:
                on_prompt(sum(len(context.tokens) for context in contexts) // len(contexts), total)

        while (done := len(self._context.tokens)) < end:
            before_a_batch()
            self._context.mark("prompt")
            self._context.decode(self._stream[done : min(end, done + self._context.batch_size)])
        self._context.mark("prompt")
        while draft and (done := len(self._draft_context.tokens)) < end:
            before_a_batch()
            draft.read(min(end, done + self._draft_context.batch_size))
        if on_prompt:
            on_prompt(total, total)

    def _reader(self, options: Options) -> DraftModel | None:
        """The draft model, if it should read the prompt. One that `auto` has dropped catches up by itself when it is asked
        again."""
        wanted = options.drafter == "draft" or (options.drafter == "auto" and self._session.worth > 0.0)
        return self._draft_model if wanted else None


def _common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)
