"""The process that a service runs in: real children, with services that say what they are told."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import services

from localspec.engine import process
from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.process import CannotStartError, EngineDied, Factory, Host
from localspec.engine.stop import Stop

REMEDY = "switch it on again"
Start = Callable[..., Host]


def until(holds: Callable[[], object]) -> None:
    """The limit only keeps a broken test from hanging."""
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("this never came about")


def is_running(pid: int) -> bool:
    """A process that has ended may still be listed, as a zombie."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        # Without /proc, or ended in between.
        return not Path("/proc/self").exists()
    return state.split()[0] != "Z"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs") / "new" / "log"


@pytest.fixture(scope="module")
def host(log: Path) -> Iterator[Host]:
    """A child for all tests that leave it alive."""
    host = Host(services.Talker, (), log_file=log, remedy=REMEDY)
    assert list(host.start()) == []
    yield host
    host.close()


@pytest.fixture
def start(log: Path) -> Iterator[Start]:
    hosts: list[Host] = []

    def start(factory: Factory, *arguments: object, **options: object) -> Host:
        hosts.append(Host(factory, arguments, log_file=log, remedy=REMEDY, **options))  # type: ignore[arg-type]
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()
        assert not is_running(host.pid)


def test_a_call_gives_what_the_method_yields_and_sends_in_order(host: Host) -> None:
    assert list(host.call("count", 4)) == [0, 1, 2, 3]
    assert list(host.call("both")) == ["sent", "yielded", "sent again"]
    assert host.pid != os.getpid()


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("user", ContextFullError, "Too long; say less."),
        ("picky", UserError, "Say less."),
        ("builtin", ValueError, "odd number"),
        ("odd", RuntimeError, "OddError: very odd"),
    ],
)
def test_an_error_reaches_the_caller_and_the_next_call_is_fine(
    host: Host, kind: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        list(host.call("fail", kind))
    assert (type(caught.value), str(caught.value)) == (error, says)
    assert list(host.call("count", 1)) == [0]


def test_the_traceback_of_a_bug_is_in_the_log(host: Host, log: Path) -> None:
    with pytest.raises(ValueError, match="odd number"):
        list(host.call("fail", "builtin"))
    assert "ValueError: odd number" in log.read_text()


def test_a_stop_reaches_a_call_under_way(host: Host) -> None:
    stop = Stop()
    items = host.call("hold", stop=stop)
    assert next(items) == "holding"
    stop.ask()
    assert list(items) == ["stopped"]


def test_a_stop_before_a_call_ends_it_and_no_other(host: Host) -> None:
    stop = Stop()
    stop.ask()
    assert list(host.call("late", stop=stop)) == [True]
    assert list(host.call("stopping")) == [False]


def test_a_stop_that_comes_when_the_call_is_over_is_not_of_the_next(host: Host) -> None:
    """Even where it is under way to the child while the next call is made."""
    stops = [Stop() for _ in range(200)]
    ends = [threading.Thread(target=stop.ask) for stop in stops]
    for stop, end in zip(stops, ends, strict=True):
        items = host.call("count", 1, stop=stop)
        assert next(items) == 0
        end.start()
        assert list(items) == []
        assert list(host.call("stopping")) == [False]
    for end in ends:
        end.join()


def test_a_call_that_nobody_reads_to_its_end_is_stopped_and_forgotten(host: Host) -> None:
    items = host.call("hold")
    assert next(items) == "holding"
    items.close()  # type: ignore[attr-defined]
    assert list(host.call("count", 2)) == [0, 1]


def test_what_it_prints_goes_to_the_log(host: Host, log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    list(host.call("print", "noise"))
    assert capfd.readouterr() == ("", "")
    for line in ("noise on 1\n", "noise on 2\n", "noise by Python\n"):
        assert line in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_in_the_terminal_is_nothing_to_it(host: Host) -> None:
    os.kill(host.pid, signal.SIGINT)
    assert list(host.call("count", 1)) == [0]


def test_what_it_does_when_idle_ends_with_the_next_call(start: Start, tmp_path: Path) -> None:
    host = Host(services.Talker, (), log_file=tmp_path / "log", remedy=REMEDY, idle_seconds=0.01)
    try:
        list(host.start())
        for times in (1, 2):
            until(lambda times=times: (tmp_path / "log").read_text().count("idle") == times)  # type: ignore[misc]
            assert list(host.call("count", 1)) == [0]
            assert (tmp_path / "log").read_text().count("unwanted") == times
    finally:
        host.close()


def test_closing_frees_the_service(start: Start, log: Path) -> None:
    host = start(services.Talker, "hello", "again")
    assert list(host.start()) == ["hello", "again"]
    before = log.read_text().count("closed")
    host.close()
    assert log.read_text().count("closed") == before + 1


def test_a_service_that_cannot_be_made_says_why(start: Start) -> None:
    host = start(services.refuse)
    making = host.start()
    assert next(making) == "begun"
    with pytest.raises(UserError, match="no such file"):
        next(making)


def test_making_it_can_be_given_up(start: Start) -> None:
    seen: list[str] = []
    host = start(services.never_ready)
    for item in host.start(lambda: seen == ["begun"]):
        seen.append(item)
    assert seen == ["begun"]


def test_what_cannot_be_sent_to_a_process_cannot_start_one() -> None:
    with pytest.raises(CannotStartError):
        Host(lambda link: services.Talker(link), (), log_file=Path(os.devnull), remedy=REMEDY)


def test_one_that_does_not_end_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PATIENCE_SECONDS", 0.3)
    host = start(services.Talker)
    list(host.start())
    items = host.call("stubborn")
    assert next(items) == "never ends"
    host.close()
    # A stop would have no effect, and there is nobody to wait for.
    with pytest.raises(EngineDied):
        next(items)


def test_one_that_does_not_stop_can_be_ended_from_another_thread(start: Start) -> None:
    host = start(services.Talker)
    list(host.start())
    items = host.call("stubborn")
    assert next(items) == "never ends"
    ending = threading.Thread(target=host.kill)
    ending.start()
    with pytest.raises(EngineDied, match="it did not stop and was ended, see the log file"):
        next(items)
    ending.join()


def test_a_death_in_the_middle_of_a_call_is_one_sentence(start: Start, log: Path) -> None:
    deaths: list[EngineDied] = []
    host = start(services.Talker, on_death=deaths.append)
    list(host.start())
    items = host.call("abort")
    assert next(items) == 1
    with pytest.raises(EngineDied) as caught:
        next(items)
    assert str(caught.value) == "The engine has stopped working (signal 6, see the log file); switch it on again."
    with pytest.raises(EngineDied):
        list(host.call("count", 1))
    until(lambda: deaths)
    assert [str(death) for death in deaths] == [str(caught.value)]
    # Where in Python it was.
    assert "in abort" in log.read_text()


def test_a_death_that_nobody_waits_for_is_noticed(start: Start) -> None:
    deaths: list[EngineDied] = []
    host = start(services.Talker, on_death=deaths.append)
    list(host.start())
    os.kill(host.pid, signal.SIGKILL)
    until(lambda: deaths)
    assert "(signal 9, perhaps because memory ran out, see the log file)" in str(deaths[0])


ORPHAN = """
import sys
from pathlib import Path
import services
from localspec.engine.process import Host
from localspec.engine.stop import Stop

host = Host(services.Talker, (), log_file=Path(sys.argv[1]), remedy="")
list(host.start())
items = host.call("stubborn")
next(items)
print(host.pid, flush=True)
next(items)
"""


def test_it_ends_with_its_parent_however_that_ends(tmp_path: Path, log: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(ORPHAN)
    folders = [str(Path(services.__file__).parent), str(Path(process.__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    with subprocess.Popen([sys.executable, script, log], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    until(lambda: not is_running(child))
