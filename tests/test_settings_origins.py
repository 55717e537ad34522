"""Where the value of a setting comes from, and what of config.toml is for the app alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.engine.errors import UserError
from localspec.settings import check_value, load_app_settings, load_settings, origins


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(
        'temp = 0.5\ntop_k = 20\nseed = 1\ntheme = "nord"\n[keys]\n"chat.new" = "f9"\n'
    )
    return {"LOCALSPEC_CONFIG_DIR": str(tmp_path), "LOCALSPEC_SEED": "2", "LOCALSPEC_TOP_P": ""}


def test_every_value_has_the_origin_that_won(environ):
    settings = load_settings({"temp": 0.25, "min_p": 0.1}, environ)
    assert origins(settings, environ) == {
        "temp": "at the start",
        "min_p": "at the start",
        "top_k": "config.toml",
        "seed": "LOCALSPEC_SEED",
    }


def test_a_config_that_has_broken_since_leaves_the_origin_open(environ, tmp_path):
    settings = load_settings({}, environ)
    (tmp_path / "config.toml").write_text("temp =")
    assert origins(settings, environ)["temp"] == "at the start"


def test_theme_and_keys_are_for_the_app(environ, tmp_path):
    assert load_app_settings(environ) == {"theme": "nord", "keys": {"chat.new": "f9"}}
    (tmp_path / "config.toml").write_text("temp = 1\n")
    assert load_app_settings(environ) == {}
    (tmp_path / "config.toml").write_text("themes = 1\n")
    with pytest.raises(UserError, match="themes"):
        load_app_settings(environ)


def test_a_typed_value_is_read_like_any_other():
    assert check_value("temp", " 0.5 ") == 0.5
    assert check_value("drafter", "AUTO") == "auto"
    with pytest.raises(UserError) as caught:
        check_value("top_p", "2")
    assert str(caught.value) == "2 is out of range: give a number from 0 to 1."
