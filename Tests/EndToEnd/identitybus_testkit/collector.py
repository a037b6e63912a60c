# SPDX-License-Identifier: Apache-2.0
"""An OpenTelemetry collector that keeps what it is told, read with OpenTelemetry's own protocol files."""

import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from .waiting import until


@dataclass(frozen=True)
class Span:
    service: str
    name: str
    kind: str
    trace: str
    id: str
    #: "" for none.
    parent: str
    start: int
    end: int
    attributes: dict[str, Any]
    #: (trace, span)
    links: tuple[tuple[str, str], ...]
    is_error: bool


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class SpanCollector:
    """Listens until it is closed, and again on the same port when it is opened again."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, host: str = "127.0.0.1") -> None:
        """`certificate`: with its key, for TLS."""
        self._certificate, self._host = certificate, host
        self._lock = threading.Lock()
        self._spans: list[Span] = []
        #: What came, byte for byte.
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []
        self.schemas: set[str] = set()
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self.open()

    @property
    def environment(self) -> dict[str, str]:
        scheme = "https" if self._certificate else "http"
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{scheme}://{self._host}:{self.port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}

    @property
    def spans(self) -> list[Span]:
        with self._lock:
            return list(self._spans)

    def of(self, trace: str) -> list[Span]:
        return [span for span in self.spans if span.trace == trace]

    def wait(self, trace: str, *names: str) -> list[Span]:
        """All spans of a trace, as soon as spans with these names are among them, each `service name`."""
        def found() -> list[Span]:
            spans = self.of(trace)
            return spans if set(names) <= {f"{span.service} {span.name}" for span in spans} else []

        return until(found, 30, lambda: f"{names} among {[(s.service, s.name, s.parent) for s in self.of(trace)]}")

    def open(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_ours = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                if is_ours:
                    collector._take(body, {name.lower(): value for name, value in self.headers.items()})
                self.send_response(200 if is_ours else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
            # Each connection shakes hands in a thread of its own.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="collector", daemon=True).start()

    def close(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _take(self, body: bytes, headers: dict[str, str]) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        spans = []
        with self._lock:
            for part in request.resource_spans:
                resource = _attributes(part.resource.attributes)
                self.resources.append(resource)
                self.schemas.add(part.schema_url)
                for scope in part.scope_spans:
                    self.schemas.add(scope.schema_url)
                    assert scope.scope.name == "identitybus" and scope.scope.version
                    spans += [self._span(str(resource["service.name"]), span) for span in scope.spans]
            self.bodies.append(body)
            self.headers.append(headers)
            self._spans += spans

    @staticmethod
    def _span(service: str, span: ProtoSpan) -> Span:
        return Span(
            service=service, name=span.name, kind=ProtoSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            trace=span.trace_id.hex(), id=span.span_id.hex(), parent=span.parent_span_id.hex(),
            start=span.start_time_unix_nano, end=span.end_time_unix_nano, attributes=_attributes(span.attributes),
            links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            is_error=span.status.code == 2)
