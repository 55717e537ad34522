"""A whole profile, in a home folder whose name has everything that a name may have: all of it works, and nobody else can read
any of it, whatever the umask."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from terminals import Terminal

import hub_server
from command import PATIENCE, command, surroundings
from hub_fetch import NAME
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry

HOME = 'Zoë\'s "own" 家 & $HOME; 50% #1?'
TEXT = "One lyne is rong.\n" * 3
LONG = "These are some words that a model reads before it answers, and there are many of them. " * 12


@dataclass
class Profile:
    """A home folder, and what a person does in it. Everything is created with umask 0."""

    home: Path
    model: Path
    hub: str

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in surroundings().items() if not name.startswith(("LOCALSPEC_", "XDG_"))}
        # An interpreter finds its packages by the name of the home folder, too.
        return kept | {"HOME": str(self.home), "HF_ENDPOINT": self.hub, "PYTHONNOUSERSITE": "1"}

    def run(self, *arguments: object, code: int = 0) -> str:
        """A command; its stdout."""
        done = subprocess.run(
            command(*arguments),
            env=self.environment,
            capture_output=True,
            cwd=self.home,
            timeout=PATIENCE,
            check=False,
            umask=0,
        )
        assert done.returncode == code, done.stderr.decode()
        return done.stdout.decode()

    @property
    def data(self) -> Path:
        return self.home / ".local" / "share" / "localspec"

    def chat(self) -> None:
        """A chat in a terminal: a message, an export, and words that are not sent."""
        before = os.umask(0)
        try:
            app = Terminal(
                command("-m", self.model, "--temp", "0", "--max-tokens", "20", "--ctx", "2048"), self.environment
            )
        finally:
            os.umask(before)
        try:
            app.until(lambda: "╰" in app.shown)
            app.type(LONG.encode() + b"\r")
            app.until(lambda: self._answered() == 1)
            app.type(f"/export {self.home}/chat.md\r".encode())
            app.until((self.home / "chat.md").exists)
            app.until(lambda: any(self._cache.glob("states/*.state")))
            app.type(b"not sent")
            app.until(lambda: any("not sent" in file.read_text() for file in self.data.glob("unsent.json")))
            app.type(b"\x11")
            assert app.ended() == 0
        finally:
            app.close()

    @property
    def _cache(self) -> Path:
        return self.home / ".cache" / "localspec"

    def _answered(self) -> int:
        if not (self.data / STORE_FILE).exists():
            return 0
        with Store(self.data / STORE_FILE) as store:
            chats = [store.load(info.id).thread.path() for info in store.chats()]
        return sum(bool(path[-1].finish) for path in chats)


@pytest.fixture(scope="module")
def profile(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profile]:
    """After a session."""
    home = tmp_path_factory.mktemp("home") / HOME
    home.mkdir(mode=0o700)
    model = Path(shutil.copy(tiny_llama, home / "my 'model' é.gguf"))
    model.chmod(0o600)
    with hub_server.serving() as server:
        server.add("user/repo", {NAME: hub_server.Content(tiny_llama.read_bytes())})
        made = Profile(home, model, server.url)
        text = home / 'täxt "1".md'
        text.write_text(TEXT)
        text.chmod(0o600)
        made.run("run", "-m", model, "--max-tokens", "5", "hello")
        made.run("pull", "--quiet", "user/repo")
        # What a tiny model writes has no end.
        made.run("rewrite", "-m", model, "--quiet", "-i", "Repeat.", "-o", home / "new.md", text, code=1)
        made.run("doctor", "-m", model, "--audit", "--max-tokens", "5")
        made.chat()
        made.run("sessions", "export", "1", "--json", "-o", home / "chät.json")
        yield made


def files_of(profile: Profile) -> set[str]:
    return {str(path.relative_to(profile.home)) for path in profile.home.rglob("*") if path.is_file()}


def test_all_of_it_is_there(profile: Profile) -> None:
    """Each kind of file that the program makes."""
    expected = {
        ".local/share/localspec/chats.db",
        ".local/share/localspec/history.jsonl",
        ".local/share/localspec/unsent.json",
        f".local/share/localspec/models/{NAME}",
        ".cache/localspec/costs.json",
        "chat.md",
        "chät.json",
        "new.md",
    }
    there = files_of(profile)
    assert expected <= there, expected - there
    assert any(name.endswith(".log") for name in there)
    assert any(name.endswith(".state") for name in there)
    assert (profile.home / "chat.md").read_text().count(LONG.strip()) == 1
    document = json.loads((profile.home / "chät.json").read_text())
    assert [message["role"] for message in document["messages"]] == ["user", "assistant"]
    assert "hello" not in profile.run("sessions", "list")
    assert LONG[:20] in profile.run("sessions", "show", "1")
    assert NAME.removesuffix(".gguf") in profile.run("models")


def test_nobody_else_can_read_any_of_it(profile: Profile) -> None:
    """0600 and 0700, after umask 0; but for a new text that the person has asked for, which is as any other program's."""
    modes = {path.relative_to(profile.home): path.stat() for path in profile.home.rglob("*")}
    loose = {
        str(path): oct(status.st_mode & 0o777)
        for path, status in modes.items()
        if status.st_mode & 0o777 != (0o700 if stat.S_ISDIR(status.st_mode) else 0o600)
    }
    assert set(loose) <= {"new.md"}, loose


def test_the_next_start_goes_on(profile: Profile) -> None:
    """The chat is opened again, and what was not sent stands in the prompt."""
    app = Terminal(command("-m", profile.model, "-c"), profile.environment)
    try:
        app.until(lambda: "not sent" in app.shown)
        app.type(b"\x11")
        assert app.ended() == 0
    finally:
        app.close()


def test_what_was_open_to_all_becomes_private(tmp_path: Path) -> None:
    """Files of an earlier version, or of a careless copy."""
    folder = tmp_path / "data"
    with Store(folder / STORE_FILE) as store:
        store.save(store.create("m"), Entry(1, None, "user", "private"))
    for path in folder.iterdir():
        path.chmod(0o666)
    with Store(folder / STORE_FILE) as store:
        store.save(1, Entry(2, 1, "assistant", "more"))
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
