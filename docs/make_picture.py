"""Draws the picture of the README: the real app, answering a real question with SmolLM2 and a draft made from it.

    python docs/make_picture.py

Writes docs/chat.svg. Needs the starter model (fetched if it is missing) and takes a minute.
"""

import asyncio
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from localspec.chat.service import Wanted
from localspec.engine.engine import EngineSettings, Options
from localspec.engine.llama import quantize
from localspec.engine.sampling import Sampling
from localspec.hub.starter import fetch_starter
from localspec.measure.prompts import load_prompts
from localspec.settings import find_folders
from localspec.tui.app import ChatApp
from localspec.tui.backend import process_loader
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt

PICTURE = Path(__file__).with_name("chat.svg")
QUESTION = "code_editing-2"
"""Which of our own prompts for measurements."""


async def main() -> None:
    """Ask, wait for the answer, save the screen."""
    question = next(prompt for prompt in load_prompts() if prompt.id == QUESTION).turns[0]
    target = fetch_starter(find_folders().models)
    with tempfile.TemporaryDirectory() as folder:
        draft = quantize(target, Path(folder, "SmolLM2-135M-Instruct-Q2_K.gguf"), "Q2_K")
        settings = EngineSettings(target, draft, context_length=2048, measure_costs=True)
        options = Options(Sampling(temperature=0), max_tokens=260)
        app = ChatApp(process_loader(Wanted(settings, options), Path(folder, "log")))
        try:
            async with app.run_test(size=(110, 34)) as pilot:
                app.screen.query_one(Prompt).text = question
                await pilot.press("enter")
                await _answered(app, pilot, 1)
                await pilot.press("f2")
                await pilot.pause(0.5)
                PICTURE.write_text(app.export_screenshot(title="localspec"), encoding="utf-8")
        finally:
            app.worker.close()
            app.worker.join()


async def _answered(app: ChatApp, pilot: Pilot[None], number: int) -> None:
    for _ in range(1000):
        await asyncio.sleep(1.0)
        if sum(answer.complete for answer in app.screen.query(Answer)) == number:
            await pilot.pause(0.5)
            return
    raise TimeoutError("the answer did not come")


if __name__ == "__main__":
    asyncio.run(main())
