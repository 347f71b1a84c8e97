# SPDX-License-Identifier: Apache-2.0
"""The controller's REST API for scripts: thin, so that what is sent and answered stays visible."""
import json
import urllib.error
import urllib.parse
import urllib.request

from . import shell


class Problem(shell.LabError):
    """A problem document (RFC 9457) or whatever else came instead of success."""

    def __init__(self, method, path, status, document):
        self.status, self.document = status, document
        detail = document.get("detail") or document.get("title") or "no problem document"
        for error in document.get("errors", []):
            detail += f"; {error.get('pointer')}: {error.get('detail')}"
        super().__init__(f"{method} {path}: {status}: {detail}")


class Client:
    def __init__(self, base, token=None, wait=10):
        self.base, self.token, self.wait = base, token, wait

    def request(self, method, path, body=None, timeout=30, content=None):
        """The decoded answer of a 2xx; raises Problem for any other status."""
        headers = {"Accept": "application/json"}
        if body is not None:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            headers["Content-Type"] = content or kind
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = json.dumps(body).encode() if body is not None else None
        wanted = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(wanted, timeout=timeout) as answer:
                text = answer.read()
                return json.loads(text) if text else {}
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                document = json.loads(text)
            except ValueError:
                document = {"detail": text.decode(errors="replace")[:300]}
            raise Problem(method, path, error.code, document) from None
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            raise shell.LabError(f"{method} {path}: {getattr(error, 'reason', error)}") from error

    def create(self, kind, /, wait=None, **fields):
        return self._active("POST", f"/v1/{kind}", fields, wait)

    def update(self, kind, identity, /, wait=None, **fields):
        return self._active("PATCH", f"/v1/{kind}/{identity}", fields, wait)

    def get(self, kind, identity):
        return self.request("GET", f"/v1/{kind}/{identity}")

    def list(self, kind, /, **filters):
        query = "?" + urllib.parse.urlencode(filters) if filters else ""
        return self.request("GET", f"/v1/{kind}{query}")["items"]

    def delete(self, kind, identity, wait=None):
        """Deletes and waits until the gateways have confirmed, that is until it is 404."""
        self.request("DELETE", f"/v1/{kind}/{identity}?wait={self.wait if wait is None else wait}")

        def gone():
            try:
                self.get(kind, identity)
            except Problem as problem:
                return problem.status == 404
            return False
        shell.wait_until(gone, 10, f"{kind} {identity} deleted")

    def _active(self, method, path, fields, wait):
        seconds = self.wait if wait is None else wait
        answer = self.request(method, f"{path}?wait={seconds}" if seconds else path, fields)
        state = answer.get("status", {}).get("state")
        if seconds and state != "active":
            reason = answer.get("status", {}).get("reason")
            raise shell.LabError(f"{method} {path}: still {state} after {seconds} s: {reason}")
        return answer
