"""The settings of answers, as a person changes them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, TextArea

from localspec.engine.sampling import Sampling
from localspec.settings import Settings, load_settings
from localspec.tui.screens.settings import DEFAULTS, SettingsScreen
from localspec.tui.widgets.field import Field
from scripted import said, seen, until
from stage import Stage


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"LOCALSPEC_CONFIG_DIR": str(tmp_path)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def control(app: Stage, name: str, kind: type = Input):
    return app.screen.query_one(f"#field-{name}", Field).query_one(kind)


async def put(pilot: Pilot[None], name: str, value: str) -> None:
    """Replace what stands in a field of one line, with the keyboard."""
    control(pilot.app, name).focus()
    await pilot.press("end", "ctrl+u", *({".": "full_stop", "-": "minus"}.get(letter, letter) for letter in value))


async def leave(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await until(pilot, lambda: pilot.app.results)


def line(app: Stage, label: str) -> str:
    """The line of a label, its blanks made one."""
    found = next(line for line in seen(app).splitlines() if label in line)
    return re.sub(r"\s+", " ", found.strip("│ "))


async def test_every_value_is_shown_with_where_it_comes_from(environ, config):
    config.write_text("top_k = 20\n")
    environ |= {"LOCALSPEC_SEED": "7"}
    start = load_settings({"repeat_penalty": 1.1}, environ)
    screen = SettingsScreen(start, {"temp": 0.25}, recommended={"top_p": 0.8, "temp": 0.6}, environ=environ)
    app = Stage(screen)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "temperature" in seen(app))
        assert line(app, "temperature") == "temperature 0.25 this chat"
        assert line(app, "top-k") == "top-k 20 config.toml"
        assert line(app, "top-p") == "top-p 0.8 model"
        assert line(app, "min-p") == "min-p 0 default"
        assert line(app, "repeat penalty") == "repeat penalty 1.1 at the start"
        assert line(app, "seed") == "seed 7 LOCALSPEC_SEED"
        assert line(app, "longest answer") == "longest answer until the model ends default"
        assert "as started: auto" in line(app, "drafter")


async def test_what_is_changed_for_this_chat_comes_back(environ, config):
    app = Stage(SettingsScreen(Settings(), {"top_k": 5, "min_p": 0.1}, environ=environ))
    async with app.run_test() as pilot:
        await put(pilot, "temp", "0.5")
        await until(pilot, lambda: line(app, "temperature") == "temperature 0.5 changed")
        await put(pilot, "top-k", "")
        await put(pilot, "max-tokens", "100")
        await leave(pilot, "ctrl+s")
    assert app.results == [{"temp": 0.5, "top_k": None, "max_tokens": 100}]
    assert not config.exists()


async def test_the_system_prompt_has_several_lines_and_can_be_emptied(environ):
    start = Settings(system="Be brief.")
    app = Stage(SettingsScreen(start, {}, environ=environ))
    async with app.run_test() as pilot:
        editor = control(app, "system", TextArea)
        assert editor.text == "Be brief."
        editor.focus()
        await pilot.press("end", "enter", "[", "b", "]")
        await until(pilot, lambda: "[b]" in seen(app))
        await leave(pilot, "ctrl+s")
    assert app.results == [{"system": "Be brief.\n[b]"}]
    app = Stage(SettingsScreen(start, {"system": "Mine."}, environ=environ))
    async with app.run_test() as pilot:
        control(app, "system", TextArea).text = ""
        await leave(pilot, "ctrl+s")
    assert app.results == [{"system": ""}]


async def test_the_drafter_is_chosen_from_those_there_are(environ):
    app = Stage(SettingsScreen(Settings(), {}, has_draft=False, environ=environ))
    async with app.run_test() as pilot:
        control(app, "drafter", Select).focus()
        await pilot.press("enter", "down")
        await until(pilot, lambda: "lookup" in seen(app))
        assert "draft " not in re.sub("drafter", "", seen(app))
        await pilot.press("down", "enter")
        await leave(pilot, "ctrl+s")
    assert app.results == [{"drafter": "lookup"}]


@pytest.mark.parametrize(
    ("name", "typed", "sentence"),
    [
        ("temp", "9", "9 is out of range: give a number from 0 to 5."),
        ("top-k", "1.5", "1.5 is not a whole number: give a whole number from 0 to"),
        ("seed", "abc", "abc is not a whole number"),
        ("repeat-penalty", "-", "- is not a number: give a number from 0.1 to 10."),
    ],
)
@pytest.mark.parametrize("key", ["ctrl+s", "f5"])
async def test_a_bad_value_is_told_below_it_and_nothing_is_lost(environ, config, name, typed, sentence, key):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test() as pilot:
        await put(pilot, "min-p", "0.5")
        await put(pilot, name, typed)
        await pilot.press(key)
        await until(pilot, lambda: sentence in seen(app))
        assert "Not saved" in seen(app)
        assert (control(app, name).value, control(app, "min-p").value) == (typed, "0.5")
        assert control(app, name).has_focus
        assert app.results == []
        await put(pilot, name, "1")
        assert sentence not in seen(app)
        await leave(pilot, "ctrl+s")
    assert app.results == [{"min_p": 0.5, name.replace("-", "_"): 1}]
    assert not config.exists()


async def test_a_bad_value_is_told_as_soon_as_it_is_left(environ):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test() as pilot:
        await put(pilot, "top-p", "9")
        await pilot.press("enter")
        await until(pilot, lambda: "9 is out of range: give a number from 0 to 1." in seen(app))


async def test_defaults_go_into_config_toml_beside_what_stands_there(environ, config):
    config.write_text("# mine\ntop_k = 20 # few\n\n[keys]\n\"chat.new\" = 'ctrl+t'\n")
    app = Stage(SettingsScreen(load_settings({}, environ), {"temp": 0.25}, environ=environ))
    async with app.run_test() as pilot:
        await put(pilot, "top-k", "7")
        control(app, "system", TextArea).text = 'Say "yes".\n'
        control(app, "theme", Select).value = "nord"
        await until(pilot, lambda: app.theme == "nord")
        await leave(pilot, "f5")
    assert app.results == [{"top_k": 7, "system": 'Say "yes".\n'}]
    text = config.read_text()
    assert text.startswith("# mine\ntop_k = 7 # few\n")
    assert text.endswith("\n[keys]\n\"chat.new\" = 'ctrl+t'\n")
    table = tomllib.loads(text)
    assert table.pop("keys") == {"chat.new": "ctrl+t"}
    assert table == {"top_k": 7, "temp": 0.25, "system": 'Say "yes".\n', "theme": "nord"}
    assert load_settings({}, environ).top_k == 7


async def test_a_config_that_cannot_be_read_is_one_sentence_and_stays(environ, config):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test(size=(140, 40)) as pilot:
        config.write_text("temp = \n")
        await put(pilot, "temp", "1")
        await pilot.press("f5")
        await until(pilot, lambda: "is not TOML" in said(app))
        assert app.results == []
        await leave(pilot, "ctrl+s")
    assert config.read_text() == "temp = \n"
    assert app.results == [{"temp": 1.0}]


async def test_esc_leaves_and_asks_first_when_something_was_typed(environ):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test() as pilot:
        await put(pilot, "temp", "9")
        await pilot.press("escape")
        await until(pilot, lambda: "esc again leaves without them" in seen(app))
        await pilot.press("9", "escape")
        assert app.results == []
        await leave(pilot, "escape")
    assert app.results == [None]
    app = Stage(SettingsScreen(Settings(), {"temp": 1, "system": "x"}, environ=environ))
    async with app.run_test() as pilot:
        await leave(pilot, "escape")
    assert app.results == [None]


async def test_a_theme_shows_at_once_and_goes_when_it_is_not_saved(environ, config):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test() as pilot:
        before = app.theme
        control(app, "theme", Select).value = "textual-light"
        await until(pilot, lambda: app.theme == "textual-light")
        await leave(pilot, "escape")
        assert app.theme == before
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test() as pilot:
        control(app, "theme", Select).value = "textual-light"
        await until(pilot, lambda: app.theme == "textual-light")
        await leave(pilot, "ctrl+s")
        assert app.theme == "textual-light"
    assert app.results == [{}]
    assert not config.exists()


async def test_every_field_is_reached_with_the_keyboard(environ):
    app = Stage(SettingsScreen(Settings(), {}, environ=environ))
    async with app.run_test(size=(40, 12)) as pilot:
        met = []
        for _ in range(12):
            met.append(app.focused)
            await pilot.press("tab")
        assert len(set(met)) == 12
        assert met[0] is app.focused
        assert [type(widget).__name__ for widget in met[-3:]] == ["TextArea", "Button", "Button"]
        met[0].focus()
        await pilot.pause()
        await pilot.press("down", "down", "up")
        assert app.focused is met[1]
        met[-2].focus()
        await pilot.pause()
        await leave(pilot, "enter")
    assert app.results == [{}]


async def test_values_of_a_chat_that_make_no_sense_do_no_harm(environ):
    nonsense = {"temp": "[/b]\x1b", "top_k": [1], "seed": -1, "drafter": "x", "system": 3, "other": 1}
    app = Stage(SettingsScreen(Settings(), nonsense, environ=environ))
    async with app.run_test() as pilot:
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "is not a number" in seen(app))
        for name in ("temp", "top-k", "seed"):
            await put(pilot, name, "")
        await leave(pilot, "ctrl+s")
    assert app.results == [{"temp": None, "top_k": None, "seed": None, "drafter": None, "system": None}]


def test_the_defaults_shown_are_those_of_the_engine():
    sampling = Sampling()
    assert {name: float(DEFAULTS[name]) for name in ("top_k", "top_p", "min_p", "repeat_penalty")} == {
        name: getattr(sampling, name) for name in ("top_k", "top_p", "min_p", "repeat_penalty")
    }
    assert float(DEFAULTS["temp"]) == sampling.temperature
