"""Changing a value in config.toml leaves everything else as a person has written it."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.config_file import update_config
from localspec.engine.errors import UserError
from localspec.settings import load_settings

FILE = """\
# My settings.

temp = 0.5  # warm
"top_k"=20
system = '''
Be brief # not a comment
temp = 3
'''   # how to talk

# About keys.
[keys]
"chat.new" = "ctrl+t"
temp = 9
"""

PIECES = [
    "# a comment = 1\n",
    "\n",
    "temp = 0.5\n",
    "temp=1 # warm\n",
    "top_k\t=\t20\t#\tmany\n",
    '"seed" = 1_000\n',
    "system = 'a # b'\n",
    'system = """\nseed = 3 # no\n [keys]\n""" # yes\n',
    "model = 'a = b'\n",
    "other = [\n  1, # one\n  2,\n]\n",
    "dotted.name = { a = 1 }\n",
]
TABLES = ["[keys]\ntemp = 7\n", "# about\n# it\n\n[x.y]\nseed = 1", "[[z]]\nsystem = 1\n[[z]]\n"]
texts = st.text(st.characters(codec="utf-8") | st.sampled_from("\"\\\n\r\t#'= "), max_size=30)
changes = st.fixed_dictionaries(
    {},
    optional={
        "temp": st.none() | st.floats(0, 5),
        "top_k": st.none() | st.integers(0, 100),
        "seed": st.none() | st.integers(0, 2**32 - 1),
        "system": st.none() | texts,
        "theme": st.none() | texts,
    },
)


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


files = st.builds(
    lambda head, tables, end: "".join([*head, *tables]).rstrip("\n" if end else ""),
    st.lists(st.sampled_from(PIECES), max_size=6),
    st.lists(st.sampled_from(TABLES), max_size=2),
    st.booleans(),
).filter(is_toml)


def update(tmp_path: Path, text: str, **changes: object) -> str:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    update_config(file, changes)  # type: ignore[arg-type]
    return file.read_bytes().decode()


def test_a_value_is_replaced_where_it_stands(tmp_path):
    changed = update(tmp_path, FILE, temp=0.25, top_k=7)
    assert changed == FILE.replace("temp = 0.5  #", "temp = 0.25  #").replace('"top_k"=20', '"top_k"=7')


def test_a_text_of_several_lines_is_replaced_as_a_whole(tmp_path):
    changed = update(tmp_path, FILE, system="Short.")
    before, behind = FILE[: FILE.index("'''")], FILE[FILE.rindex("'''") + 3 :]
    assert changed == f'{before}"Short."{behind}'
    several = 'One "two"\n\\three"""\n'
    assert tomllib.loads(update(tmp_path, FILE, system=several))["system"] == several


def test_a_new_value_comes_behind_the_others_and_before_the_tables(tmp_path):
    changed = update(tmp_path, FILE, seed=7, theme="nord")
    assert changed == FILE.replace("# how to talk\n", '# how to talk\nseed = 7\ntheme = "nord"\n')


def test_with_tables_only_it_comes_before_them_and_what_is_said_about_them(tmp_path):
    assert update(tmp_path, "# Mine.\n\n# Keys:\n[keys]\n", seed=7) == "# Mine.\n\nseed = 7\n\n# Keys:\n[keys]\n"


def test_a_value_that_goes_leaves_its_comment(tmp_path):
    assert update(tmp_path, FILE, temp=None, top_k=None, seed=None) == FILE.replace("temp = 0.5  #", "#").replace(
        '"top_k"=20\n', ""
    )


@pytest.mark.parametrize("text", ["temp = 1", "", "# nothing"])
def test_a_file_may_end_without_a_line_end(text, tmp_path):
    changed = update(tmp_path, text, seed=7)
    assert changed == (f"{text}\nseed = 7\n" if text else "seed = 7\n")


def test_line_ends_and_the_byte_order_mark_stay(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbftemp = 1\r\n# end\r\n")
    update_config(file, {"temp": 2, "system": "a\nb"})
    assert file.read_bytes() == b'\xef\xbb\xbftemp = 2\r\nsystem = """\r\na\r\nb"""\r\n# end\r\n'
    assert load_settings({}, {"LOCALSPEC_CONFIG_DIR": str(tmp_path)}).system == "a\nb"


@settings(max_examples=300, deadline=None)
@given(files, changes)
def test_any_file_means_what_it_meant_but_for_the_changes(tmp_path_factory, text, changes):
    folder = tmp_path_factory.mktemp("config")
    changed = update(folder, text, **changes)
    meant = {**tomllib.loads(text), **changes}
    gone = {name for name, value in changes.items() if value is None}
    expected = {name: value for name, value in meant.items() if name not in gone}
    for name, value in changes.items():
        if isinstance(value, str):
            expected[name] = value.replace("\r\n", "\n")
    assert tomllib.loads(changed) == expected
    untouched = [line for line in text.splitlines() if line.startswith(("#", "model", "other", "  ", "dotted", "["))]
    lines = changed.splitlines()
    assert all(line in lines for line in untouched)
    assert update(folder, changed, **changes) == changed


@pytest.mark.parametrize("content", [b"temp = \n", b"temp = 1\n= 2", b"temp = '\xff'\n", b"[keys\n"])
def test_a_file_that_is_no_toml_is_left_alone(content, tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        update_config(file, {"temp": 0.5})
    assert str(file) in str(caught.value)
    assert file.read_bytes() == content


def test_what_cannot_be_put_in_safely_is_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("theme.name = 1\n")
    with pytest.raises(UserError, match=r"theme cannot be put into .* change it with an editor"):
        update_config(file, {"theme": "nord"})
    assert file.read_text() == "theme.name = 1\n"


def test_a_new_file_is_private_and_an_old_one_keeps_its_permissions(tmp_path):
    file = tmp_path / "new" / "config.toml"
    update_config(file, {"temp": 0.5})
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("temp = 0.5\n", 0o600)
    file.chmod(0o644)
    update_config(file, {"temp": 0.25})
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("temp = 0.25\n", 0o644)
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_a_link_stays_a_link(tmp_path):
    real = tmp_path / "dotfiles.toml"
    real.write_text("temp = 1\n")
    (tmp_path / "config.toml").symlink_to(real)
    update_config(tmp_path / "config.toml", {"temp": 2})
    assert (tmp_path / "config.toml").is_symlink()
    assert real.read_text() == "temp = 2\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError):
        update_config(tmp_path / "file" / "config.toml", {"temp": 1})
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        update_config(tmp_path / "config.toml", {"temp": 1})
