"""Settings, verdicts and downloads that a disk, a crash or another program has damaged."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damages import DAMAGES

import hub_server
from command import call
from hub_fetch import NAME, Fetch, whole
from localspec.config_file import update_config
from localspec.engine.errors import UserError
from localspec.measure.audit_file import AUDIT_FILE, last_audit
from localspec.settings import find_folders, load_app_settings, load_settings
from localspec.tui.keymap import load_keymap

Scale = Callable[[int, int], int]

CONFIG = """
# mine
model = "small.gguf"
temp = 0.5
top_k = 40
system = '''
Be brief, “please”.
'''
theme = "nord"

[keys]
"chat.stop" = "ctrl+s"

[rewrite]
shorten = "Make it shorter."
""".encode()
HOSTILE = [
    b"temp = " + b"[" * 100_000,
    b"temp = " + b"9" * 10_000,
    b"\0",
    b"\xff\xfe",
    b"[keys]\n" * 2,
    b"keys = [",
    b"temp = []",
]


def test_a_damaged_config_is_one_sentence(tmp_path: Path, scale: Scale) -> None:
    """Whatever is in it: it is read, or one sentence says what is wrong; and it is not written over."""
    file, dice, refused = find_folders().config / "config.toml", random.Random(6), 0
    file.parent.mkdir(parents=True)
    for number in range(scale(300, 5000)):
        damaged = HOSTILE[number] if number < len(HOSTILE) else DAMAGES[number % len(DAMAGES)](dice, CONFIG)
        file.write_bytes(damaged)
        try:
            load_settings({})
            load_keymap(load_app_settings().get("keys"), ())
        except UserError as error:
            assert str(error).endswith((".", "?"))
            assert str(error).isprintable()
            refused += 1
        try:
            update_config(file, {"temp": 0.7})
        except UserError:
            assert file.read_bytes() == damaged
        else:
            # Other values may be damaged.
            with contextlib.suppress(UserError):
                assert load_settings({}).temp == 0.7
    assert refused > 20


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_the_program_says_what_is_wrong_with_its_settings(number: int) -> None:
    """Without a traceback."""
    file = find_folders().config / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_bytes(HOSTILE[number])
    outcome = call("run", "-m", "nowhere.gguf", "hello")
    assert outcome.code in (1, 2)
    assert "went wrong" not in outcome.sentence


def test_a_damaged_verdict_is_none(tmp_path: Path, scale: Scale) -> None:
    """It is shown or not; the next one takes its place."""
    file, dice, heard = tmp_path / AUDIT_FILE, random.Random(7), 0
    found = {"key": {"measured": 1_760_000_000, "flips": 1, "tokens": 100, "max_gap": 0.5, "longest": 90, "draft": "d"}}
    whole = json.dumps(found, indent=1).encode()
    for number in range(scale(200, 5000)):
        file.write_bytes(DAMAGES[number % len(DAMAGES)](dice, whole))
        said = last_audit(tmp_path, "key")
        heard += said is not None
        assert said is None or said.startswith("Audited ")
    assert heard
    for data in (b"", b"[" * 100_000, b"[]", b'{"key": 1}', b'{"key": {"measured": 1e999, "flips": [], "tokens": {}}}'):
        file.write_bytes(data)
        assert last_audit(tmp_path, "key") is None


@pytest.mark.parametrize("beside", ["", ".json"])
def test_a_damaged_part_of_a_download_ends_in_the_right_file(
    beside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scale: Scale
) -> None:
    """A bit that has changed on the disk is found when the file is whole, and what is no part of it is not gone on with."""
    content, dice = hub_server.long_content(1_000_003), random.Random(8)
    with hub_server.serving() as hub:
        hub_server.isolate_hub(monkeypatch, tmp_path / "home", hub.url)
        hub.add("user/repo", {NAME: content})
        for number in range(scale(10, 100)):
            fetch = Fetch(tmp_path / str(number))
            fetch.stopped_at(600_000)
            damaged = fetch.note if beside else fetch.part
            damaged.write_bytes(DAMAGES[number % len(DAMAGES)](dice, damaged.read_bytes()))
            fetch.run()
            assert whole(fetch.target, content)
            assert list(fetch.target.parent.iterdir()) == [fetch.target]
            shutil.rmtree(fetch.target.parent)
