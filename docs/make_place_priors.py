"""Trains what the place-aware lookup knows before its first answer, on the edits that are for designing, and writes it where
the drafter finds it:

    python docs/make_place_priors.py MODEL.gguf

Only the vocabulary and the chat template of the model are used.
"""

import sys
from pathlib import Path

from localspec.bench_edits import Answers
from localspec.engine.engine import Engine, EngineSettings
from localspec.measure.edits import edit_pairs
from localspec.measure.place_priors import train, write

if __name__ == "__main__":
    with Engine(EngineSettings(Path(sys.argv[1]))) as engine:
        answers = Answers(engine, None)
        write(train(answers.of(edit_pairs("design")), answers.piece))
