"""What can go wrong."""

from __future__ import annotations

from http.client import HTTPMessage
from typing import Any


class StrataError(Exception):
    """The server refused a request, or could not be reached.

    status: The HTTP status; 0 if there was no answer.
    type: The class of failure, such as `invalid_request_error` or `not_found_error`.
    code: The code of the failure, for a program.
    request_id: The id under which the server's log knows the request.
    retry_after: After how many seconds the server wants to be asked again.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        type: str = "connection_error",
        code: str = "no_answer",
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after

    @classmethod
    def of(cls, status: int, headers: HTTPMessage, answer: Any, data: bytes) -> StrataError:
        """The error of an answer; one that is not Strata's own, such as a gateway's, is shown as it is."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            error = {"message": data[:200].decode("utf-8", "replace").strip()}
        wait = headers.get("Retry-After", "")
        return cls(
            str(error.get("message") or f"status {status}"),
            status=status,
            type=str(error.get("type", "server_error")),
            code=str(error.get("code", "unknown")),
            request_id=headers.get("X-Strata-Request-Id"),
            retry_after=float(wait) if wait.isdigit() else None,
        )


class StrataConnectionError(StrataError):
    """The server could not be reached, or did not answer in time."""
