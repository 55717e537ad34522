"""The hub, as far as models are fetched from it: what a repository holds, and the bytes of its files.

What it says comes through huggingface-hub, so that HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, proxies and certificates mean
here what they mean there. That library downloads, too, but no longer goes on with what an earlier process has begun
(issue 4196 of its repository), so the bytes are read here, over its connection pool.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec import __version__
from localspec.engine.errors import UserError
from localspec.hub.hub_errors import Asked, OfflineError, PassingError, refusal
from localspec.hub.patience import Pause, patiently, sleep
from localspec.hub.ranges import UnusableAnswerError, first_byte, range_header
from localspec.hub.reference import HubReference
from localspec.hub.remote import RemoteFile

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub.hf_api import ModelInfo

_TRUE = ("1", "on", "yes", "true")
_QUOTE_CHARACTERS = 120
_LARGEST_ANSWER = 50_000_000_000
"""Bytes: the hub's store answers for a larger file only if a range of it is asked for."""


@dataclass(frozen=True)
class Answer:
    """The bytes of a file, arriving."""

    begins: int
    """Where in the file they begin; not where they were asked for, if the server has ignored that."""
    chunks: Iterator[bytes]
    """Raises PassingError where the connection breaks off."""


class TooShortError(Exception):
    """The server says that the file ends before the bytes that were asked for."""


class ChangedError(Exception):
    """The hub says that it is sending another content than it promised."""


class Hub:
    """One hub. `endpoint`: its address, None for that of the environment; `pause`: how to wait before another try."""

    def __init__(self, endpoint: str | None = None, pause: Pause = sleep) -> None:
        from huggingface_hub import constants

        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        self.pause = pause

    def files(self, reference: HubReference) -> list[RemoteFile]:
        """All files of the repository, as of the commit that the reference means now. Raises UserError."""
        from huggingface_hub import HfApi, constants

        self._check_online()
        api = HfApi(endpoint=self.endpoint, library_name="localspec", library_version=__version__)
        asked = self._asked(reference.repository, reference.revision)

        def ask() -> ModelInfo:
            with _as_ours(asked):
                return api.model_info(
                    reference.repository,
                    revision=reference.revision,
                    timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
                    files_metadata=True,
                )

        try:
            return self._listed(patiently(ask, self.pause), reference.repository)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(_not_a_hub(asked)) from error

    @staticmethod
    def _listed(info: ModelInfo, repository: str) -> list[RemoteFile]:
        if not info.sha:
            raise ValueError("no commit")
        found = [
            RemoteFile(
                repository=repository,
                commit=info.sha,
                path=sibling.rfilename,
                size=sibling.size,
                etag=sibling.lfs.sha256 if sibling.lfs else sibling.blob_id or "",
                sha256=sibling.lfs.sha256 if sibling.lfs else None,
            )
            for sibling in info.siblings or ()
            if isinstance(sibling.size, int) and (sibling.lfs or sibling.blob_id)
        ]
        return [file for file in found if file.is_possible]

    @contextmanager
    def open(self, file: RemoteFile, start: int = 0, end: int | None = None) -> Iterator[Answer]:
        """Ask once for the bytes of `file` from `start` on, and before `end`.

        Raises PassingError where another try may help, TooShortError, ChangedError, or UserError. The token goes to the
        hub itself only, not to where it redirects to.
        """
        from huggingface_hub import constants, get_session, hf_hub_url

        self._check_online()
        url = hf_hub_url(file.repository, file.path, revision=file.commit, endpoint=self.endpoint)
        headers = {"user-agent": f"localspec/{__version__}", "accept-encoding": "identity"}
        if token := _token():
            headers["authorization"] = f"Bearer {token}"
        if start or end is not None or file.size > _LARGEST_ANSWER:
            headers["range"] = range_header(start, end)
        asked = self._asked(file.repository, file.commit, file.path)
        with (
            _as_ours(asked),
            get_session().stream("GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT) as response,
        ):
            yield _answer(response, asked, file, start, end)

    def read_range(self, file: RemoteFile, start: int, length: int) -> bytes:
        """`length` bytes of `file` from `start` on, fewer where it ends before. Raises UserError."""
        end = min(file.size, start + length)
        if end <= start:
            return b""

        def read() -> bytes:
            found = bytearray()
            with self.open(file, start, end) as answer:
                position = answer.begins
                for chunk in answer.chunks:
                    found += chunk[max(0, start - position) : max(0, end - position)]
                    position += len(chunk)
                    if position >= end:
                        break
            if len(found) < end - start:
                raise PassingError(f"{file.name} broke off: try again later.")
            return bytes(found)

        try:
            return patiently(read, self.pause)
        except (TooShortError, ChangedError) as error:
            raise UserError(f"{file.name} has changed on the hub: try again.") from error

    def _asked(self, repository: str, revision: str | None, file: str | None = None) -> Asked:
        return Asked(self.endpoint, repository, revision, file, has_token=bool(_token()))

    def _check_online(self) -> None:
        from huggingface_hub import constants

        if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
            raise OfflineError("HF_HUB_OFFLINE is set, so nothing is asked of the hub: unset it to download.")


def _token() -> str | None:
    from huggingface_hub import constants, get_token

    return None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()


def _answer(response: httpx2.Response, asked: Asked, file: RemoteFile, start: int, end: int | None) -> Answer:
    status = response.status_code
    if status == 416:
        raise TooShortError
    if status not in (200, 206):
        raise refusal(status, _lower(response), asked)
    if not _is_same(_etag(response), file.etag):
        raise ChangedError
    try:
        begins = first_byte(status, response.headers.get("content-range"), start, file.size)
    except UnusableAnswerError as error:
        raise PassingError(f"The hub answers with other bytes than asked for ({error}): try again later.") from error
    expected = (file.size if end is None or status == 200 else end) - begins
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise PassingError(
            f"Something between here and the hub packs {file.name} anew: check the network and the proxies."
        )
    length = response.headers.get("content-length")
    if length is not None and int(length) != expected:
        raise PassingError(
            f"Something between here and the hub sends another file than {file.name}: check the network."
        )
    # Pieces as they come: gathered into equal ones, the last would be lost when the connection breaks off.
    return Answer(begins, response.iter_raw())


def _etag(response: httpx2.Response) -> str | None:
    """What the hub knows the content by: told where it redirects to a store, whose own tag means nothing to us."""
    hub = response.history[0] if response.history else response
    etag = hub.headers.get("x-linked-etag") or (None if response.history else hub.headers.get("etag"))
    return None if etag is None else etag.removeprefix("W/").strip('"')


def _is_same(etag: str | None, expected: str) -> bool:
    # A mirror may have tags of its own, which are not hashes of the content.
    return etag is None or len(etag) != len(expected) or etag == expected


@contextmanager
def _as_ours(asked: Asked) -> Iterator[None]:
    """Errors of the libraries, as ours."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        yield
    except HfHubHTTPError as error:
        raise refusal(error.response.status_code, _lower(error.response), asked) from error
    except OfflineModeIsEnabled as error:
        raise OfflineError("HF_HUB_OFFLINE is set, so nothing is asked of the hub: unset it to download.") from error
    except HFValidationError as error:
        raise UserError(f"{asked.repository} cannot be a repository of the hub: write user/repo.") from error
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
        raise UserError(_not_a_hub(asked)) from error
    except httpx2.TransportError as error:
        host = asked.endpoint.partition("://")[2] or asked.endpoint
        reason = (str(error) or type(error).__name__)[:_QUOTE_CHARACTERS].rstrip(".")
        silent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError)
        what = f"{host} did not answer" if silent else f"The connection to {host} broke off"
        raise PassingError(
            f"{what} ({reason}): check the network, and HF_ENDPOINT and the proxies if they are set."
        ) from error
    except httpx2.RequestError as error:
        raise UserError(_not_a_hub(asked)) from error


def _not_a_hub(asked: Asked) -> str:
    return f"What answers at {asked.endpoint} is not a hub: check the network, and HF_ENDPOINT if it is set."


def _lower(response: httpx2.Response) -> Mapping[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
