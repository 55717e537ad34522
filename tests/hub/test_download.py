from __future__ import annotations

import resource
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hub_fetch import NAME, SIZE, data_of, whole
from hub_server import PIECE_BYTES, Content, Fault, long_content
from localspec.hub.hub_errors import UnreachableError
from localspec.hub.part import part_bytes
from localspec.hub.starter import FetchCancelledError

PATIENCE = 60


def test_a_file_comes_whole_and_private_and_alone(fetch, content):
    """The model is there with the right bytes, for this user only, and nothing lies beside it."""
    assert fetch.run() is True
    assert whole(fetch.target, content)
    assert list(fetch.target.parent.iterdir()) == [fetch.target]
    assert fetch.target.stat().st_mode & 0o777 == 0o600
    assert fetch.target.parent.stat().st_mode & 0o777 == 0o700
    assert fetch.seen[0] == 0
    assert fetch.seen[-1] == SIZE
    assert fetch.seen == sorted(fetch.seen)


def test_a_stopped_download_goes_on_where_it_was(fetch, hub, content):
    """What has come once does not come again."""
    fetch.stopped_at(1_000_000)
    kept = fetch.part.stat().st_size
    assert 1_000_000 <= kept < 1_000_000 + 2 * PIECE_BYTES
    assert fetch.part.stat().st_mode & 0o777 == 0o600
    assert part_bytes(fetch.target, fetch.file()) == kept
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.ranges_asked() == [None, f"bytes={kept}-"]
    assert list(fetch.target.parent.iterdir()) == [fetch.target]


def test_a_connection_that_breaks_off_is_gone_on_with_at_once(fetch, hub, content):
    """One command is enough on a bad network, and the waits stay short as long as something comes."""
    hub.faults["body"].extend([Fault(cut=100_000)] * 12)
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.served == SIZE
    assert [wait for wait, _ in fetch.waits] == [1.0] * 12
    assert "broke off" in fetch.waits[0][1]


def test_a_server_that_falls_silent_is_asked_again(fetch, hub, content, monkeypatch):
    """After a while without a byte, on a new connection, for what is missing."""
    from huggingface_hub import constants

    file, silent = fetch.file(), threading.Event()
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.5)

    def sent() -> None:
        if hub.served > 1_000_000 and len(hub.asked("store")) == 1:
            silent.wait(PATIENCE)

    hub.sent = sent
    fetch.run(file)
    silent.set()
    assert whole(fetch.target, content)
    assert "broke off" in fetch.waits[0][1]
    assert hub.ranges_asked()[1].startswith("bytes=")


def test_a_network_that_stays_bad_is_said_so_and_the_part_is_kept(fetch, hub):
    """After six failures in a row the sentence says why, and that nothing is lost."""
    hub.faults["body"].extend([Fault(cut=100_000)] + [Fault(cut=0)] * 6)
    sentence = fetch.refusal(UnreachableError)
    assert sentence.startswith("The connection to 127.0.0.1:")
    assert sentence.endswith("; 100 kB of model-Q4_0.gguf are here and kept, so run it again to go on.")
    assert [wait for wait, _ in fetch.waits] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert fetch.part.stat().st_size == 100_000


def test_a_server_without_ranges_starts_over_and_ends_right(fetch, hub, content):
    """Where the server sends everything again, the bytes still land in their places."""
    hub.ranges = False
    hub.faults["body"].append(Fault(cut=2_000_000))
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.served == 2_000_000 + SIZE


def test_a_server_that_does_not_tell_lengths_is_no_harm(fetch, hub, content):
    """An answer that ends early without having said how long it is counts as broken off."""
    hub.lengths = False
    hub.faults["body"].append(Fault(cut=500_000))
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.served == SIZE


def test_a_file_that_changes_between_two_attempts_begins_anew(fetch, hub, folder):
    """The part of the old file is thrown away, never continued with bytes of the new one."""
    fetch.stopped_at(1_000_000)
    new = long_content(SIZE, seed=8)
    hub.add("user/repo", {NAME: new}, commit="d" * 40)
    assert part_bytes(fetch.target, fetch.file()) == 0
    fetch.run()
    assert whole(fetch.target, new)
    assert hub.ranges_asked() == [None, None]


def test_a_part_outlives_a_commit_that_leaves_its_file_alone(fetch, hub, content):
    """A new description in the repository is no reason to download a model again."""
    fetch.stopped_at(1_000_000)
    hub.repositories["user/repo"].commit = "d" * 40
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.served < SIZE + 1_000_000


def test_a_file_that_changes_under_the_download_is_said_so(fetch, hub, folder):
    """The hub redirects to other bytes than it has listed: nothing of them is kept."""
    hub.changed = True
    assert fetch.refusal() == (
        "model-Q4_0.gguf has changed on the hub while it was being downloaded, so what had come was thrown away: run the "
        "same command again."
    )
    assert list(folder.iterdir()) == []


def test_wrong_bytes_never_become_a_model(fetch, hub, folder):
    """What does not have the promised SHA-256 is thrown away."""
    hub.corrupt = True
    sentence = fetch.refusal()
    assert sentence.startswith("model-Q4_0.gguf has come with other bytes than the hub promised")
    assert list(folder.iterdir()) == []
    assert hub.served == SIZE


def test_a_part_damaged_on_the_disk_is_downloaded_again(fetch, hub, content):
    """A power cut may leave zeros in a part: the person gets the right file, not an error."""
    fetch.stopped_at(1_000_000)
    with fetch.part.open("r+b") as part:
        part.write(bytes(4096))
    fetch.run()
    assert whole(fetch.target, content)


def test_a_part_that_is_whole_already_needs_no_bytes(fetch, hub, content):
    """Killed between the last byte and the name: only the name is missing."""
    fetch.stopped_at(1_000_000)
    fetch.part.write_bytes(data_of(content))
    hub.served = 0
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.served == 0


def test_a_part_longer_than_the_file_is_thrown_away(fetch, content):
    """Nonsense in the folder does not end in nonsense."""
    fetch.stopped_at(1_000_000)
    fetch.part.write_bytes(data_of(content) + b"more")
    fetch.run()
    assert whole(fetch.target, content)


def test_a_server_that_finds_the_file_too_short_is_asked_from_the_beginning(fetch, hub, content):
    """416: the bytes asked for are said not to be there."""
    fetch.stopped_at(1_000_000)
    hub.faults["body"].append(Fault(status=416))
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.ranges_asked()[-1] is None


def test_a_page_to_log_in_is_not_taken_for_the_file(fetch, hub, content):
    """A hotel's network answers everything with a page: it never lands in the part."""
    hub.faults["body"].extend([Fault(page=b"<html>Welcome!</html>")])
    fetch.run()
    assert whole(fetch.target, content)
    assert fetch.waits[0][1].startswith("Something between here and the hub sends another file than model-Q4_0.gguf")


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({}, 1.0), ({"Retry-After": "7"}, 7.0), ({"RateLimit": '"resolvers";r=0;t=55'}, 55.0)],
)
def test_a_hub_that_asks_to_wait_is_waited_for(fetch, hub, content, headers, wait):
    """429 and 503 are waited out, as long as the hub asks for."""
    hub.faults["resolve"].append(Fault(status=429, headers=headers))
    hub.faults["body"].append(Fault(status=503, headers=headers))
    fetch.run()
    assert whole(fetch.target, content)
    assert [seconds for seconds, _ in fetch.waits] == [wait, wait if headers else 2.0]


def test_small_files_are_checked_by_the_id_that_git_gives_them(fetch, hub, folder):
    """Outside of large file storage the hub tells no SHA-256, and wrong bytes are found out all the same."""
    small = Content(b"GGUF and little more")
    hub.add("user/repo", {NAME: small}, small={NAME})
    fetch.run()
    assert fetch.target.read_bytes() == b"GGUF and little more"
    fetch.target.unlink()
    hub.corrupt = True
    assert "other bytes than the hub promised" in fetch.refusal()


def test_the_token_goes_to_the_hub_and_not_to_its_store(fetch, hub, monkeypatch):
    """A redirect to another server does not take the token along."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.repositories["user/repo"].token = "hf_secret"
    fetch.run()
    assert {request.headers.get("authorization") for request in hub.asked("hub")} == {"Bearer hf_secret"}
    assert [request.headers.get("authorization") for request in hub.asked("store")] == [None]


def test_a_disk_that_takes_no_more_is_one_sentence_and_keeps_the_part(fetch, hub, content, folder):
    """What has come stays, and is gone on with once there is space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        sentence = fetch.refusal()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sentence == (
        f"{folder} takes no more (File too large): free 2.0 MB and run the same command again; 1.0 MB of {NAME} are here "
        "and kept."
    )
    assert fetch.part.stat().st_size == 1_000_000
    fetch.run()
    assert whole(fetch.target, content)
    assert hub.ranges_asked()[-1] == "bytes=1000000-"


def test_a_folder_that_cannot_be_written_to_is_one_sentence(fetch, folder):
    """The sentence names the folder."""
    folder.mkdir(parents=True)
    (folder / f"{NAME}.part").mkdir()
    assert fetch.refusal().startswith(f"{NAME} could not be saved in {folder} (")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_series_of_breaks_and_stops_ends_in_the_right_file(fetch, hub, content, data):
    """Whatever breaks where: the bytes are right, and with ranges none comes twice but what was in the air."""
    for path in fetch.target.parent.glob("*"):
        path.unlink()
    hub.faults["body"].clear()
    hub.ranges = data.draw(st.booleans())
    hub.faults["body"].extend(
        Fault(cut=cut) for cut in data.draw(st.lists(st.integers(PIECE_BYTES, SIZE // 2), max_size=5))
    )
    for stop in sorted(data.draw(st.lists(st.integers(1, SIZE - 8 * PIECE_BYTES), max_size=3))):
        fetch.stop_at, fetch.seen = stop, []
        with pytest.raises(FetchCancelledError):
            fetch.run()
    fetch.stop_at, fetch.seen = None, []
    here = part_bytes(fetch.target, fetch.file())
    hub.faults["body"].clear()
    fetch.run()
    assert hub.ranges_asked()[-1] == (f"bytes={here}-" if here else None)
    assert whole(fetch.target, content)
