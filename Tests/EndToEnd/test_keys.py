# SPDX-License-Identifier: Apache-2.0
"""Keys by purpose: what somebody can do who has got hold of one of them, and that nobody outside can tell an id or a code
from what stands in a log."""

import base64
import hashlib
import hmac
import json
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any, Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import SERVICES, GatewayDeployment
from identitybus_testkit.http import Client, bearer
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.secrets import (
    INTERNAL_KEY, PURPOSES, derived, derived_keys, digest, gateway_keys, signature)
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

GATEWAY = "identitybus/gateway"


@pytest.fixture(scope="module")
def deployment(make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment("sqlite", kind=GatewayDeployment, services=tuple(SERVICES))
    assert isinstance(deployment, GatewayDeployment)
    # The app as it is committed: without a `tokenSecret`, so that its user tokens follow from the internal key.
    shutil.copy(REPOSITORY / "config" / "apps.yaml", deployment.apps_file)
    services = [deployment.process(name).start() for name in SERVICES]
    for service in services:
        service.wait_ready()
    return deployment


@pytest.fixture(scope="module")
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


@pytest.fixture(scope="module")
def client(deployment: Deployment) -> Client:
    assert isinstance(deployment, GatewayDeployment)
    gateway = deployment.gateway().start().wait_ready()
    return gateway.client  # type: ignore[attr-defined]


def put(bus: Bus, command: Command, kid: str, secret: bytes) -> tuple[int, int]:
    value, headers = command.structured()
    topic = bus.topic(command.service)
    return bus.put(value, [*headers, ("signature", signature(kid, topic, headers, value, secret))], command.key, topic=topic)


def refused(bus: Bus, command: Command, kid: str, secret: bytes, reason: str) -> None:
    """The command is set aside for `reason`, and its sender is told no more than anybody."""
    partition, offset = put(bus, command, kid, secret)
    topic = bus.topic(command.service)

    def letter() -> Record | None:
        letters = bus.collector.dead_letters[partition, offset]
        return next((one for one in letters if one.header("dlq_original_topic") == topic.encode()), None)

    found = bus.collector.wait(letter, 30, lambda: f"a dead letter for {command}")
    assert found.header("dlq_reason") == reason.encode(), found
    assert bus.reply(command.id)["reason"] == "UNAUTHENTICATED"


# The gateway's keys


FOR_ADA: dict[str, Any] = {"authtype": "app_user", "authid": "ada"}


@pytest.mark.parametrize(("source", "attributes"), [
    (GATEWAY, {}), (GATEWAY, {"authtype": "api_key"}), (GATEWAY, {"authid": "demo-backend"}),
    (GATEWAY, {"authtype": "api_key", "authid": "nobody"}), (GATEWAY, {"authtype": "service", "authid": "link"}),
    ("identitybus/user", FOR_ADA), ("identitybus/", FOR_ADA), ("mine", FOR_ADA),
], ids=str)
def test_the_gateways_key_is_no_services(bus: Bus, source: str, attributes: dict[str, Any]) -> None:
    command = c.register(fresh("install")).but(source=source, attributes=attributes)
    refused(bus, command, "gateway", derived("gateway"), "PRINCIPAL_INVALID")


@pytest.mark.parametrize(("attributes", "reason"), [
    ({"authtype": "api_key", "authid": "demo-backend"}, "INSUFFICIENT_SCOPE"),
    ({"authtype": "app_user", "authid": "ada"}, "USER_TOKEN_NOT_ALLOWED"),
], ids=["as a key", "as a user"])
def test_the_gateways_key_sends_no_internal_command(bus: Bus, attributes: dict[str, Any], reason: str) -> None:
    install = fresh("install")
    for command in [c.register(install, user="new"), c.establish(install, fresh("ext")), c.query(install)]:
        command = command.but(source=GATEWAY, attributes=attributes)
        put(bus, command, "gateway", derived("gateway"))
        assert bus.reply(command.id)["reason"] == reason


def test_the_gateways_key_speaks_for_others(bus: Bus) -> None:
    command = c.request_code(fresh("ext")).but(
        source=GATEWAY, attributes={"authtype": "api_key", "authid": "demo-backend"})
    put(bus, command, "gateway", derived("gateway"))
    assert bus.reply(command.id)["status"] == "succeeded"


@pytest.mark.parametrize("kid", ["internal", "gateway", "events"])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_each_key_signs_its_own_and_nothing_else(bus: Bus, kid: str, purpose: str) -> None:
    command = c.request_code(fresh("ext")).but(
        source=GATEWAY, attributes={"authtype": "api_key", "authid": "demo-backend"})
    if (kid, purpose) in [("internal", "commands"), ("gateway", "gateway")]:
        put(bus, command, kid, derived(purpose))
        assert bus.reply(command.id)["status"] == "succeeded"
    else:
        reason = "KEY_UNKNOWN" if kid == "events" else "SIGNATURE_INVALID"
        refused(bus, command, kid, derived(purpose), reason)


@pytest.mark.parametrize(("kid", "secret", "reason"), [
    ("gateway", derived("gateway"), "PRINCIPAL_INVALID"), ("events", derived("gateway"), "SIGNATURE_INVALID"),
    ("internal", derived("gateway"), "PRINCIPAL_INVALID"), ("internal", derived("commands"), "PRINCIPAL_INVALID"),
    ("events", derived("tokens"), "SIGNATURE_INVALID"), ("demo-backend", None, "PRINCIPAL_INVALID"),
], ids=["gateway", "gateway as events", "gateway as internal", "commands", "tokens", "an API key"])
def test_only_the_events_key_makes_events(bus: Bus, kid: str, secret: bytes | None, reason: str) -> None:
    """Also not the gateway's, which it shares with the services: replies to it have a topic and a key of their own."""
    topic = bus.topic("link", "events")
    envelope = {
        "specversion": "1.0", "id": str(uuid.uuid4()), "source": "identitybus/link", "appid": "demo",
        "type": "identity.link.linked.v1", "datacontenttype": "application/json", "causationid": str(uuid.uuid4()),
        "data": {"installId": fresh("install"), "externalId": "ada", "userId": "f" * 24}}
    value = json.dumps(envelope).encode()
    header = signature(kid, topic, [], value, secret)
    partition, offset = bus.put(
        value, [("content-type", b"application/cloudevents+json"), ("signature", header)], b"demo/ada", topic=topic)

    def letters() -> list[Record]:
        found = bus.collector.dead_letters[partition, offset]
        return [one for one in found if one.header("dlq_original_topic") == topic.encode()]

    # Both that read it: sync and user.
    bus.collector.wait(lambda: len(letters()) == 2, 30, lambda: f"two dead letters; there are {letters()}")
    assert {one.header("dlq_reason") for one in letters()} == {reason.encode()}


def test_the_gateway_is_started_without_the_internal_key(deployment: Deployment, client: Client) -> None:
    gateway = deployment.services[-1]
    assert client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend").status == 200
    variables = Path(f"/proc/{gateway.process.pid}/environ").read_bytes()
    assert INTERNAL_KEY.encode() not in variables and derived("commands").hex().encode() not in variables
    assert derived("events").hex().encode() not in variables and b"\0DATABASE" not in variables


def test_no_key_of_the_deployment_opens_the_api(client: Client) -> None:
    for kid, secret in [("internal", INTERNAL_KEY), *((kid, derived(kid).hex()) for kid in ("gateway", "events"))]:
        for path in ["/users/auth-code", "/sdk/v1/users"]:
            answer = client.send("POST", path, {"external_id": "ada"}, bearer(kid, secret))
            assert answer.status == 401, (kid, path, answer.body)


def token(key: bytes, user: str, install: str) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(value if isinstance(value, bytes) else value.encode()).rstrip(b"=").decode()

    claims = {"sub": user, "aud": "demo", "creation": "c", "install": install, "iat": int(time.time()), "exp": int(time.time()) + 60}
    text = part('{"alg":"HS256","typ":"JWT"}') + "." + part(json.dumps(claims))
    return f"{text}.{part(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


def test_a_user_token_takes_the_key_of_tokens(client: Client) -> None:
    install = fresh("install")
    made = client.post(
        "/sdk/v1/users", {"installId": install, "device": {"kind": "phone", "platform": "ios"},
                          "appSecret": "demo-app-secret", "linking": "none"}, "demo-sdk")
    assert made.status == 200, made.body
    parts = b"".join(f"{len(part)}:{part}".encode() for part in ("user-token-key", "demo", "", ""))

    def status(key: bytes) -> int:
        shown = {"Authorization": f"Bearer {token(key, made.json['userId'], install)}"}
        return client.send("GET", f"/sdk/v1/installs/{install}", headers=shown).status

    for purpose in PURPOSES:
        code = hmac.new(derived(purpose), parts, hashlib.sha512).digest()
        assert status(code) == (200 if purpose == "tokens" else 401), purpose
        assert status(derived(purpose)) == 401
    assert status(INTERNAL_KEY.encode()) == 401


# Making the keys


def test_derive_keys_prints_what_the_gateway_needs() -> None:
    environment = {"IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY}
    answer = tool("derive-keys", "--for", "gateway", environment=environment)
    assert (answer.returncode, answer.stdout) == (0, gateway_keys() + "\n"), answer
    answer = tool("derive-keys", "--for", "events-reader", environment=environment)
    assert (answer.returncode, answer.stdout) == (0, derived_keys(["events"], INTERNAL_KEY) + "\n")
    older = "an-earlier-internal-key"
    answer = tool(
        "derive-keys", "--for", "gateway", environment=environment | {"IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": older})
    assert answer.stdout == gateway_keys(INTERNAL_KEY, older) + "\n"
    assert tool("derive-keys", "--for", "gateway", environment={}).returncode == 78
    assert tool("derive-keys", "--for", "everybody", environment=environment).returncode == 64


def test_a_gateway_with_both_kinds_of_keys_does_not_start(deployment: Deployment) -> None:
    assert isinstance(deployment, GatewayDeployment)
    gateway = deployment.gateway(IDENTITYBUS_INTERNAL_KEY=INTERNAL_KEY)
    gateway.start()
    assert gateway.wait(20) == 78
    assert "IDENTITYBUS_GATEWAY_KEYS" in gateway.text and "IDENTITYBUS_INTERNAL_KEY" in gateway.text


@pytest.mark.parametrize("keys", [
    {"IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY}, {"IDENTITYBUS_EVENTS_KEYS": derived_keys(["events"], INTERNAL_KEY)},
], ids=["internal", "events"])
def test_watch_and_send_tell_what_no_service_signed(deployment: Deployment, tmp_path: Path, keys: dict[str, str]) -> None:
    bus = deployment.bus
    shell = {name: text for name, text in deployment.environment().items() if name != "IDENTITYBUS_INTERNAL_KEY"} | keys
    topic, wanted = f"{bus.prefix}identity.replies.v1", str(uuid.uuid4())
    forged = {
        "specversion": "1.0", "id": str(uuid.uuid4()), "source": "identitybus/link", "type": "identity.reply.v1",
        "appid": "demo", "data": {
            "commandId": wanted, "commandType": "identity.link.request.v1",
            "commandDigest": digest("identity.link.request.v1", {"installId": "nobody", "externalId": "ada"}),
            "status": "succeeded", "result": {"userId": f"forged-{wanted}"}}}
    value = json.dumps(forged).encode()
    output = tmp_path / "watch.txt"
    with output.open("wb") as file:
        watch = subprocess.Popen(
            [binary("identitybus"), "watch", "--from-beginning", "--topic", "identity.replies.v1"],
            env=clean_environment() | shell, stdout=file, stderr=subprocess.DEVNULL)
    send = subprocess.Popen(
        [binary("identitybus"), "send", "link.request", "--app", "demo", "--key-id", "demo-backend", "--id", wanted,
         "--data", json.dumps({"installId": "nobody", "externalId": "ada"}), "--wait", "60"],
        env=clean_environment() | shell, stdout=subprocess.PIPE, text=True)
    try:
        while send.poll() is None:
            for kid in ("demo-backend", "gateway"):
                bus.put(value, [("signature", signature(kid, topic, [], value))], topic=topic)
            time.sleep(0.02)
        assert send.returncode == 3, "the true reply is a refusal"
        assert "forged" not in (send.stdout.read() if send.stdout else "")
        until(lambda: f"forged-{wanted}" in output.read_text() and "INSTALL_NOT_FOUND" in output.read_text(), 30, "both")
    finally:
        watch.send_signal(signal.SIGINT)
        watch.wait(60)
    for line in output.read_text().splitlines():
        assert line.startswith("NOT SIGNED BY A SERVICE") == ("forged-" in line), line


# What cannot be computed


def unkeyed(*parts: str) -> bytes:
    """As ids were made when they followed from the command alone."""
    return hashlib.sha256(b"\n".join(f"{len(part.encode())}:{part}".encode() for part in parts)).digest()


def test_ids_do_not_follow_from_the_command(deployment: Deployment, make_deployment: Callable[..., Deployment]) -> None:
    """L20, S2.

    Whoever reads a command's id in a log cannot tell what it made; another deployment makes something else of it."""
    other = make_deployment("sqlite", kind=GatewayDeployment, services=("link", "sync"))
    assert isinstance(other, GatewayDeployment)
    for service in [other.process(name).start() for name in ("link", "sync")]:
        service.wait_ready()
    person = c.register(fresh("install"), user="new")
    profile = c.sync("identify", fresh("device"), {"device_application_stamp": fresh("stamp")})
    found = [
        (place.bus.ask(person)["result"]["userId"], int(place.bus.ask(profile)["result"]["mpid"]))
        for place in (deployment, other)]
    assert found[0][0] != found[1][0] and found[0][1] != found[1][1]
    for user, mpid in found:
        assert user != unkeyed("user-id", "demo", person.source, person.id)[:12].hex()
        for counter in "012":
            code = unkeyed("mpid", "demo", profile.source, profile.id, counter)
            assert mpid != int.from_bytes(code[:8], "big", signed=True)
    for place in (deployment, other):
        salts = [place.database.execute("SELECT value FROM salt", service=name) for name in ("link", "sync")]
        assert all(len(rows) == 1 and len(rows[0][0]) == 32 for rows in salts) and salts[0] != salts[1]


def test_a_code_does_not_follow_from_the_command_and_the_internal_key(bus: Bus) -> None:
    """U2.

    Who has the internal key and reads along: he can send commands, but not tell the codes that others were given."""
    command = c.request_code(fresh("ext"))
    code = bus.ask(command)["result"]["authenticationCode"]
    parts = ("auth-code", "demo", command.source, command.id)
    text = b"".join(f"{len(part.encode())}:{part}".encode() for part in parts)
    assert code not in [hmac.new(derived(purpose), text, hashlib.sha512).hexdigest() for purpose in PURPOSES]


def test_an_idempotency_key_does_not_give_away_the_commands_id(client: Client) -> None:
    key, body = "signup-42", {"external_id": fresh("ext")}
    first = client.post("/users/auth-code", body, "demo-backend", Idempotency_Key=key)
    again = client.post("/users/auth-code", body, "demo-backend", Idempotency_Key=key)
    assert first.status == again.status == 200 and first.json == again.json
    assert first.headers["X-Request-Id"] == again.headers["X-Request-Id"]
    hashed = hashlib.sha256()
    for part in ("identitybus-gateway-command", "demo", "api_key", "demo-backend", key):
        hashed.update(f"{len(part)}:{part}\n".encode())
    guess = bytearray(hashed.digest()[:16])
    guess[6], guess[8] = guess[6] & 15 | 0x80, guess[8] & 63 | 0x80
    assert first.headers["X-Request-Id"] != str(uuid.UUID(bytes=bytes(guess)))
