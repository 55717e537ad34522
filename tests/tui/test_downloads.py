"""Downloads behind the chat: no key is late for them, and none is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from command import ROOT
from hub_server import PIECE_BYTES, HubServer, model_content
from localspec.settings import Settings, find_folders
from localspec.tui.downloads import Download, Downloads, State
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.pull_lines import progress_words
from localspec.tui.widgets.status import Status
from scripted import chat, finished, loaded, send, status_says, until
from shelves import PAIR, TARGET, Engines, install, shelf_app, stock

WORDS = "the quick brown fox jumps over the lazy dog"


async def test_every_key_arrives_while_a_model_is_downloaded_and_an_answer_is_written(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pieces come, the screen is told by the clock only; the download goes on when its screen is closed."""
    big = model_content(40_000_003)
    stock(hub, big, model_content(70_000, seed=8))
    install("one")
    go, pieces, shown = threading.Event(), [0], list[str]()

    def sent() -> None:
        pieces[0] += 1
        # The last piece waits for the last key.
        if hub.served > big.size - 2 * PIECE_BYTES:
            go.wait(60)

    hub.sent = sent
    show_pull = Status.show_pull
    monkeypatch.setattr(Status, "show_pull", lambda self, words: (shown.append(words), show_pull(self, words))[1])
    engines = Engines(scripts={"one": [[f"word{number} " for number in range(300)]]})
    app = shelf_app(engines, Settings(model="one", draft="none"))
    async with app.run_test() as pilot:
        await loaded(pilot)
        begun = time.monotonic()
        chat(app)._begin_pull(PAIR)
        await send(pilot, "Count.")
        for letter in WORDS:
            await pilot.press("space" if letter == " " else letter)
        assert chat(app).query_one(Prompt).text == WORDS
        await finished(pilot, 1)
        await until(pilot, lambda: status_says(app, "pulling tiny-8m 99 %"))
        ticks = (time.monotonic() - begun) / 0.25
        assert pieces[0] > 500
        assert len(shown) <= ticks + 2
        go.set()
        await until(pilot, lambda: status_says(app, f"{PAIR} is here. /model {PAIR} answers with it."))
        await until(pilot, lambda: not status_says(app, "pulling"))
        assert chat(app).query_one(Prompt).text == WORDS
    assert (find_folders().models / f"{TARGET}.gguf").stat().st_size == big.size
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


def test_leaving_the_app_keeps_what_has_come(hub: HubServer) -> None:
    """Closing stops the download within moments and leaves the part."""
    stock(hub, model_content(3_000_017), model_content(70_000, seed=8))
    go, begun = threading.Event(), threading.Event()

    def sent() -> None:
        if hub.served > 1_000_000:
            begun.set()
            go.wait(30)

    hub.sent = sent
    downloads = Downloads(find_folders())
    download = downloads.pull(PAIR)
    assert downloads.pull(PAIR.upper()) is download
    assert begun.wait(30)
    downloads.close()
    assert download.state is State.STOPPED
    assert (find_folders().models / f"{TARGET}.gguf.part").stat().st_size > 500_000
    go.set()


def test_a_hub_that_is_gone_is_one_sentence(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a name that means nothing another."""
    from huggingface_hub import constants

    stock(hub, model_content(1000), model_content(70_000, seed=8))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    downloads = Downloads(find_folders())
    ended = [downloads.pull(name) for name in (PAIR, "no-such-model")]
    for thread in downloads._threads:
        thread.join()
    assert [download.state for download in ended] == [State.FAILED, State.FAILED]
    assert "HF_HUB_OFFLINE" in ended[0].sentence
    assert "There is no model or pair 'no-such-model'" in ended[1].sentence


def test_how_far_a_download_is_in_words() -> None:
    """Share, bytes, speed and the time left, as far as they are known."""
    download = Download("x", State.RUNNING, done=512_000_000, total=2_000_000_000, speed=12_000_000)
    assert progress_words(download) == "25 %  512 MB of 2.0 GB  12 MB/s  2:04 left"
    assert progress_words(Download("x", total=10, done=10)) == "100 %  0 MB of 0 MB"


def test_nothing_of_the_hub_and_of_llama_is_loaded_for_the_first_paint() -> None:
    """The app's modules alone bring neither."""
    code = (
        "import sys, localspec.tui.run\n"
        "heavy = ('localspec.hub.', 'llama_cpp', 'huggingface_hub', 'numpy')\n"
        "bad = [name for name in sys.modules if name.startswith(heavy)]\n"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
