import stat
from dataclasses import fields
from pathlib import Path

import platformdirs
import pytest

from localspec.engine.errors import UserError
from localspec.settings import Folders, Settings, find_folders, load_settings, make_private

GOOD = {
    "model": "a.gguf",
    "draft": "none",
    "drafter": "lookup",
    "draft_max": 8,
    "ctx": 4096,
    "gpu_layers": 20,
    "threads": 4,
    "kv_type": "q8_0",
    "temp": 0.5,
    "top_k": 20,
    "top_p": 0.9,
    "min_p": 0.05,
    "repeat_penalty": 1.1,
    "frequency_penalty": -0.5,
    "presence_penalty": 0.25,
    "seed": 7,
    "max_tokens": 100,
    "verification": "match",
    "system": "Be brief.",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"LOCALSPEC_CONFIG_DIR": str(tmp_path)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def refusal(command_line: dict[str, object], environ: dict[str, str]) -> str:
    with pytest.raises(UserError) as caught:
        load_settings(command_line, environ)
    sentence = str(caught.value)
    assert sentence[-1] in ".?"
    assert "\n" not in sentence
    return sentence


def test_nothing_set_gives_the_defaults(environ):
    settings = load_settings({}, environ)
    assert settings == Settings()
    assert (settings.drafter, settings.kv_type, settings.verification) == ("auto", "f16", "auto")
    others = {field.name for field in fields(Settings)} - {"drafter", "kv_type", "verification"}
    assert {getattr(settings, name) for name in others} == {None}


def test_every_setting_can_be_given_in_every_layer(environ, config):
    assert GOOD.keys() == {field.name for field in fields(Settings)}
    wanted = Settings(**GOOD)
    assert load_settings(GOOD, environ) == wanted
    variables = {f"LOCALSPEC_{name.upper()}": str(value) for name, value in GOOD.items()}
    assert load_settings({}, environ | variables) == wanted
    config.write_text("".join(f"{name} = {value!r}\n" for name, value in GOOD.items()))
    assert load_settings({}, environ) == wanted


def test_numbers_arrive_as_numbers(environ):
    settings = load_settings({"temp": "1", "top_k": " 5 ", "gpu_layers": "ALL", "min_p": 0}, environ)
    assert (settings.temp, settings.top_k, settings.gpu_layers, settings.min_p) == (1.0, 5, "all", 0.0)
    assert isinstance(settings.temp, float)
    assert isinstance(settings.top_k, int)
    assert load_settings({"gpu_layers": "12"}, environ).gpu_layers == 12


def test_later_layers_win_and_absent_values_do_not(environ, config):
    config.write_text("temp = 0.1\ntop_k = 1\nseed = 1\n")
    variables = {"LOCALSPEC_TOP_K": "2", "LOCALSPEC_SEED": "2", "LOCALSPEC_TEMP": ""}
    settings = load_settings({"seed": 3, "top_k": None}, environ | variables)
    assert (settings.temp, settings.top_k, settings.seed) == (0.1, 2, 3)


def test_the_process_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("LOCALSPEC_SEED", "99")
    assert load_settings({}).seed == 99


def test_an_empty_system_prompt_on_the_command_line_overrides_the_file(environ, config):
    config.write_text('system = "Be brief."\n')
    assert load_settings({"system": ""}, environ).system == ""


def test_a_refusal_names_the_option(environ):
    assert refusal({"temp": -1}, environ) == "--temp -1 is out of range: give a number from 0 to 5."
    assert (
        refusal({"top_k": "many"}, environ)
        == "--top-k many is not a whole number: give a whole number from 0 to 1000000."
    )


def test_a_refusal_names_the_variable(environ):
    sentence = refusal({}, environ | {"LOCALSPEC_TOP_P": "1.5"})
    assert sentence == "LOCALSPEC_TOP_P=1.5 is out of range: give a number from 0 to 1."


def test_a_refusal_names_the_file_and_key(environ, config):
    config.write_text("threads = 0\n")
    assert refusal({}, environ) == f"threads = 0 in {config} is out of range: give a whole number from 1 to 1024."


def test_a_bad_value_is_refused_even_where_a_later_layer_overrides_it(environ, config):
    config.write_text("seed = -1\n")
    assert "seed = -1" in refusal({"seed": 1}, environ)


@pytest.mark.parametrize(
    ("name", "lowest", "highest", "below", "above"),
    [
        ("draft_max", 1, 32, 0, 33),
        ("ctx", 1, 1 << 30, 0, (1 << 30) + 1),
        ("gpu_layers", 0, 9999, -1, 10000),
        ("threads", 1, 1024, 0, 1025),
        ("temp", 0, 5, -0.01, 5.01),
        ("top_k", 0, 1_000_000, -1, 1_000_001),
        ("top_p", 0, 1, -0.01, 1.01),
        ("min_p", 0, 1, -0.01, 1.01),
        ("repeat_penalty", 0.1, 10, 0, 10.1),
        ("frequency_penalty", -2, 2, -2.1, 2.1),
        ("presence_penalty", -2, 2, -2.1, 2.1),
        ("seed", 0, 2**32 - 1, -1, 2**32),
        ("max_tokens", 1, 1 << 30, 0, (1 << 30) + 1),
    ],
)
def test_ranges_are_closed(name, lowest, highest, below, above, environ):
    for value in (lowest, highest):
        assert getattr(load_settings({name: value}, environ), name) == value
    for value in (below, above, str(above)):
        assert "is out of range" in refusal({name: value}, environ)


@pytest.mark.parametrize("value", ["nan", "NaN", float("nan"), "hot", "", True, [1], {}])
def test_what_is_no_number_is_no_temperature(value, environ):
    assert "is not a number: give a number from 0 to 5." in refusal({"temp": value}, environ)


@pytest.mark.parametrize("value", ["inf", "-inf", float("inf"), 10**400, "1e999"])
def test_infinity_is_out_of_range(value, environ):
    assert "is out of range: give a number from 0 to 5." in refusal({"temp": value}, environ)


@pytest.mark.parametrize("value", [1.5, 2.0, "2.0", "nan", float("inf"), True, "9" * 5000])
def test_a_seed_is_a_whole_number(value, environ):
    assert "is not a whole number: give a whole number from 0 to 4294967295." in refusal({"seed": value}, environ)


@pytest.mark.parametrize("name", ["drafter", "kv_type", "verification"])
def test_choices_are_listed(name, environ):
    sentence = refusal({name: "other"}, environ)
    assert sentence.startswith(f"--{name.replace('_', '-')} other is not one of the choices: give ")
    for word in {"drafter": "auto, draft, lookup or none", "kv_type": "f16 or q8_0"}.get(name, "rejection"), " or ":
        assert word in sentence


def test_choices_ignore_case(environ):
    assert load_settings({"kv_type": "F16", "drafter": "Lookup"}, environ).drafter == "lookup"


def test_gpu_layers_say_both_ways(environ):
    sentence = refusal({"gpu_layers": "most"}, environ)
    assert sentence == "--gpu-layers most is not a whole number: give a whole number from 0 to 9999 or all."


def test_texts_are_texts_and_not_empty(environ, config):
    assert refusal({"model": " "}, environ) == "--model ' ' is empty: give a value or leave it out."
    config.write_text("system = 3\n")
    assert refusal({}, environ) == f"system = 3 in {config} is not a text: put it in quotes."


def test_a_long_or_odd_value_is_shown_short_and_on_one_line(environ):
    assert len(refusal({"temp": "x" * 10_000}, environ)) < 160
    assert "\x1b" not in refusal({"temp": "\x1b[2J"}, environ)


def test_an_unknown_key_is_refused_with_a_suggestion(environ, config):
    config.write_text("top-p = 0.5\n")
    assert refusal({}, environ) == f"top-p in {config} is not a setting: did you mean top_p?"
    config.write_text("tempp = 0.5\n")
    assert refusal({}, environ) == f"tempp in {config} is not a setting: did you mean temp?"
    config.write_text("[colors]\nx = 1\n")
    assert refusal({}, environ).startswith(f"colors in {config} is not a setting: the settings are model, draft, ")


@pytest.mark.parametrize(
    ("text", "line"),
    [("seed = 1\ntemp = \n", 2), ("seed = 1\n\nseed = 2\n", 3), ("seed = 1\nmodel = 'a", 2), ("\n\n= 3", 3)],
)
def test_wrong_toml_is_located(text, line, environ, config):
    config.write_text(text)
    assert refusal({}, environ).startswith(f"Line {line} of {config} is not TOML (")


def test_toml_that_is_not_utf8_is_located(environ, config):
    config.write_bytes(b'seed = 1\nmodel = "caf\xe9"\n')
    assert refusal({}, environ) == f"Line 2 of {config} is not UTF-8: save the file as UTF-8."


def test_a_byte_order_mark_is_no_mistake(environ, config):
    config.write_bytes(b"\xef\xbb\xbfseed = 1\r\n")
    assert load_settings({}, environ).seed == 1


def test_a_config_that_cannot_be_read_is_one_sentence(environ, config):
    config.mkdir()
    assert refusal({}, environ).startswith(f"{config} cannot be read (")


def test_a_wrong_option_name_is_a_bug(environ):
    with pytest.raises(TypeError, match="temperature"):
        load_settings({"temperature": 1}, environ)


def test_folders_follow_the_platform_unless_told_otherwise(tmp_path, monkeypatch):
    data = platformdirs.user_data_path("localspec", appauthor=False)
    usual = Folders(
        config=platformdirs.user_config_path("localspec", appauthor=False),
        data=data,
        models=data / "models",
        cache=platformdirs.user_cache_path("localspec", appauthor=False),
        logs=platformdirs.user_log_path("localspec", appauthor=False),
    )
    assert find_folders({}) == usual
    assert find_folders({"LOCALSPEC_DATA_DIR": ""}) == usual
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    given = {
        "LOCALSPEC_CONFIG_DIR": "/c",
        "LOCALSPEC_DATA_DIR": "~/d",
        "LOCALSPEC_CACHE_DIR": "x",
        "LOCALSPEC_LOG_DIR": "/l",
    }
    assert find_folders(given) == Folders(
        Path("/c"), tmp_path / "d", tmp_path / "d/models", Path.cwd() / "x", Path("/l")
    )


def test_reading_settings_creates_nothing(tmp_path):
    load_settings({}, {f"LOCALSPEC_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "CACHE", "LOG")})
    assert list(tmp_path.iterdir()) == []


def test_made_folders_are_private_up_to_the_first_that_was_there(tmp_path):
    tmp_path.chmod(0o755)
    folder = make_private(tmp_path / "a" / "b")
    assert folder == tmp_path / "a/b"
    assert make_private(folder) == folder
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent, tmp_path)] == [0o700, 0o700, 0o755]


@pytest.mark.parametrize("below", ["", "below"])
def test_a_folder_in_the_place_of_a_file_is_refused(below, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be created"):
        make_private(tmp_path / "file" / below)
