from __future__ import annotations

import socket
from email.utils import formatdate

import pytest

from hub_server import Content, Fault, HubServer, long_content
from localspec.engine.errors import UserError
from localspec.hub.hub_client import Hub
from localspec.hub.hub_errors import UnreachableError, asked_wait
from localspec.hub.reference import HubReference

REPOSITORY = "user/repo"
NAME = "model-Q4_0.gguf"


class Asking:
    """A hub client that notes how long it would wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.reasons: list[str] = []

    def hub(self, endpoint: str | None = None) -> Hub:
        return Hub(endpoint, self._pause)

    def _pause(self, seconds: float, why: str) -> None:
        self.waits.append(seconds)
        self.reasons.append(why)

    def refusal(self, revision: str | None = None, repository: str = REPOSITORY, endpoint: str | None = None) -> str:
        with pytest.raises(UserError) as caught:
            self.hub(endpoint).files(HubReference(repository, revision))
        sentence = str(caught.value)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        return sentence


@pytest.fixture
def asking() -> Asking:
    return Asking()


@pytest.fixture
def repository(hub: HubServer):
    return hub.add(REPOSITORY, {NAME: long_content(300_000), "config.json": Content(b"{}")}, small={"config.json"})


def test_a_repository_is_listed_with_what_downloads_need(hub, repository, asking):
    """One request: the commit, and of each file size, ETag and SHA-256."""
    model, config = asking.hub().files(HubReference(REPOSITORY))
    content = repository.files[NAME]
    assert (model.repository, model.commit, model.path, model.name) == (REPOSITORY, "c" * 40, NAME, NAME)
    assert (model.size, model.etag, model.sha256) == (300_000, content.sha256, content.sha256)
    assert (config.size, config.etag, config.sha256) == (2, repository.etag("config.json"), None)
    assert [request.path for request in hub.requests] == [f"/api/models/{REPOSITORY}?blobs=true"]


def test_a_revision_is_pinned_to_its_commit(hub, repository, asking):
    """A branch is asked for once; the files are those of the commit it means now."""
    files = asking.hub().files(HubReference(REPOSITORY, "main"))
    assert {file.commit for file in files} == {"c" * 40}
    asking.hub().read_range(files[0], 0, 4)
    assert hub.asked("hub")[-1].path == f"/{REPOSITORY}/resolve/{'c' * 40}/{NAME}"


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(("start", "length"), [(0, 4), (70_000, 130_000), (299_990, 10), (299_990, 100), (300_000, 5)])
def test_a_range_of_a_remote_file_can_be_read(hub, repository, asking, ranges, start, length):
    """For the header of a model before it is downloaded, from a server without ranges, too."""
    hub.ranges = ranges
    [model, _] = asking.hub().files(HubReference(REPOSITORY))
    content = repository.files[NAME]
    whole = b"".join(content.read(at, content.size) for at in range(0, content.size, 1 << 16))
    assert asking.hub().read_range(model, start, length) == whole[start : start + length]


def test_a_range_that_breaks_off_is_read_again(hub, repository, asking):
    """One cut is no error."""
    [model, _] = asking.hub().files(HubReference(REPOSITORY))
    hub.faults["body"].append(Fault(cut=10))
    assert len(asking.hub().read_range(model, 0, 1000)) == 1000
    assert asking.waits == [1.0]


def test_a_name_that_does_not_exist(hub, asking):
    """The hub says 401 to who has no token, as it also does for private repositories."""
    assert asking.refusal() == (
        "The hub has no repository user/repo, or it is private: check the name, or set HF_TOKEN to a token that may read "
        "it."
    )


def test_a_name_that_does_not_exist_with_a_token(hub, asking, monkeypatch):
    """404 means the same."""
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert asking.refusal().startswith("The hub has no repository user/repo, or it is private")


def test_a_gated_repository_without_a_token(hub, repository, asking):
    """The sentence says where its conditions are, and what to set."""
    repository.token, repository.gated = "hf_theirs", True
    assert asking.refusal() == (
        f"user/repo is gated: accept its conditions at {hub.url}/user/repo and set HF_TOKEN to a token of that account."
    )


def test_a_gated_repository_with_a_token_that_has_no_access(hub, repository, asking, monkeypatch):
    """403: the token is good, the account is not on the list."""
    repository.token, repository.gated = "hf_theirs", True
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert asking.refusal() == (
        f"user/repo is gated, and the account of this token has no access: ask for it at {hub.url}/user/repo, or set "
        "HF_TOKEN to a token of an account that has it."
    )
    monkeypatch.setenv("HF_TOKEN", "hf_theirs")
    assert len(asking.hub().files(HubReference(REPOSITORY))) == 2


def test_a_token_that_is_not_valid(hub, repository, asking, monkeypatch):
    """401 without a code of the hub's, although a token was sent."""
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    hub.faults["api"].append(
        Fault(status=401, headers={"X-Error-Message": "Invalid credentials in Authorization header"})
    )
    assert asking.refusal() == (
        f"The hub does not accept the token: set HF_TOKEN to a valid one from {hub.url}/settings/tokens, or unset it."
    )


def test_a_revision_that_does_not_exist(hub, repository, asking):
    """The sentence names it."""
    assert asking.refusal("v9") == ("user/repo has no revision v9: give a branch, a tag or a commit, or leave out @v9.")


def test_a_repository_that_is_forbidden(hub, repository, asking):
    """403, with the hub's own reason."""
    hub.faults["api"].append(Fault(status=403, headers={"X-Error-Message": "Access to this resource is disabled."}))
    assert asking.refusal() == (
        "The hub refuses access to user/repo (Access to this resource is disabled): set HF_TOKEN to a token that may read it."
    )


def test_a_status_that_nobody_expects(hub, repository, asking):
    """Still one sentence."""
    hub.faults["api"].append(Fault(status=451))
    assert asking.refusal() == (
        "The hub does not give user/repo (status 451): check the name and HF_ENDPOINT, if that is set."
    )


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_passes_is_waited_out(hub, repository, asking, status):
    """Two failures, then the answer."""
    hub.faults["api"].extend([Fault(status=status)] * 2)
    assert len(asking.hub().files(HubReference(REPOSITORY))) == 2
    assert asking.waits == [1.0, 2.0]


def test_a_hub_that_stays_out_of_order(hub, repository, asking):
    """After four tries the sentence tells the status."""
    hub.faults["api"].extend([Fault(status=503)] * 4)
    assert asking.refusal() == "The hub is out of order (status 503): try again later."
    assert asking.waits == [1.0, 2.0, 4.0]


def test_too_many_requests(hub, repository, asking, monkeypatch):
    """As long as the hub asks for; and the sentence tells it, and what helps."""
    hub.faults["api"].extend([Fault(status=429, headers={"Retry-After": "20"})] * 4)
    assert asking.refusal() == (
        "The hub has had too many requests from here: try again in 20 seconds; with a token in HF_TOKEN it allows more."
    )
    assert asking.waits == [20.0, 20.0, 20.0]
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    hub.faults["api"].append(Fault(status=429, headers={"Retry-After": "3600"}))
    assert asking.refusal() == "The hub has had too many requests from here: try again in 60 minutes."
    assert asking.waits == [20.0, 20.0, 20.0]


def test_how_long_a_hub_asks_to_wait_is_read_in_all_its_ways():
    """Seconds, a date, or what the hub says of its limits; nonsense is nothing."""
    assert asked_wait({"retry-after": "12"}) == 12
    assert asked_wait({"retry-after": formatdate(1_000_030, usegmt=True)}, now=1_000_000) == 30
    assert asked_wait({"retry-after": formatdate(1_000_000, usegmt=True)}, now=1_000_030) == 0
    assert asked_wait({"ratelimit": '"api";r=0;t=55'}) == 55
    assert asked_wait({"ratelimit": '"api";r=3;t=55'}) is None
    assert asked_wait({"retry-after": "soon"}) is None
    assert asked_wait({}) is None


def test_a_hub_that_does_not_answer(hub, asking):
    """The sentence names the host and what to look at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        sentence = asking.refusal(endpoint=f"http://{address}")
    assert sentence.startswith(f"{address} did not answer (")
    assert sentence.endswith("): check the network, and HF_ENDPOINT and the proxies if they are set.")
    assert asking.waits == [1.0, 2.0, 4.0]


def test_a_proxy_is_used_where_one_is_set(hub, repository, asking, monkeypatch):
    """Its failure is a sentence that mentions it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    from huggingface_hub import close_session

    close_session()
    assert "and the proxies if they are set" in asking.refusal()
    assert hub.requests == []
    close_session()


def test_a_network_that_answers_with_a_page_of_its_own(hub, repository, asking):
    """Not a hub, and no traceback of a JSON parser."""
    hub.faults["api"].append(Fault(page=b"<html>Welcome to the hotel</html>"))
    assert asking.refusal() == (
        f"What answers at {hub.url} is not a hub: check the network, and HF_ENDPOINT if it is set."
    )


def test_an_address_that_is_none(hub, asking):
    """A typing error in HF_ENDPOINT."""
    assert asking.refusal(endpoint="nonsense").startswith("What answers at nonsense is not a hub: ")


def test_offline_nothing_is_asked(hub, repository, asking, monkeypatch):
    """HF_HUB_OFFLINE is obeyed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert asking.refusal() == "HF_HUB_OFFLINE is set, so nothing is asked of the hub: unset it to download."
    assert hub.requests == []


def test_a_name_that_no_repository_can_have(hub, asking):
    """The hub's own rules for names, without asking it."""
    assert asking.refusal(repository="user/re--po") == "user/re--po cannot be a repository of the hub: write user/repo."
    assert hub.requests == []


def test_a_file_that_is_gone_when_its_bytes_are_asked_for(hub, repository, asking):
    """Between the list and the download."""
    [model, _] = asking.hub().files(HubReference(REPOSITORY))
    del repository.files[NAME]
    with pytest.raises(
        UserError, match=r"^user/repo has no file model-Q4_0.gguf any more: leave out the revision and try"
    ):
        asking.hub().read_range(model, 0, 4)


def test_a_store_that_stays_out_of_order(hub, repository, asking):
    """Also behind the redirect."""
    [model, _] = asking.hub().files(HubReference(REPOSITORY))
    hub.faults["body"].extend([Fault(status=500)] * 4)
    with pytest.raises(UnreachableError, match=r"^The hub is out of order \(status 500\): try again later\.$"):
        asking.hub().read_range(model, 0, 4)
