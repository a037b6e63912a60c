# SPDX-License-Identifier: Apache-2.0
"""Our own calls for devices and for verification. Behind the gateway is a stand-in, which shows the command that a
request became and gives any reply; test_gateway_services.py has the real services."""

from typing import Any

import pytest

from identitybus_testkit.gateway import TOKEN_SECRET, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, bearer
from identitybus_testkit.standin import StandIn, pending, rejected, succeeded
from identitybus_testkit.tokens import install_token, shown, user_token
from identitybus_testkit.waiting import Deadline, until

SDK = "demo-sdk"
DEVICE = {"kind": "phone", "platform": "ios"}
USER = {
    "userId": "0" * 24, "installId": "i-1", "isLinked": True, "isRemoteEnabled": True,
    "token": {"tokenId": "t", "expiryDate": "2030-01-01T00:00:00.000Z"}, "configuration": {}}
CREATE = {"installId": "i-1", "device": DEVICE, "sdkVersion": "6.1", "appVersion": "1", "authCode": "c" * 128}
LINKER = {"installId": "i-1", "device": DEVICE, "appSecret": "s", "linking": "linker"}


INSTALL_TOKEN = {"tokenId": "i.n.s", "expiryDate": "2030-01-01T00:00:00.000Z"}


def ask(client: Client, path: str, body: Any = None, method: str = "POST") -> Answer:
    """As a device asks about its install: with its user's token. A user is created with the app's key."""
    token = user_token(TOKEN_SECRET, USER["userId"], "i-1")
    return client.send(method, path, body, bearer(SDK) if path == "/sdk/v1/users" else shown(token))


class Scripted:
    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []

    def __call__(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        return self.replies


@pytest.fixture(scope="module")
def script() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def user(gateway_deployment: GatewayDeployment, script: Scripted) -> StandIn:
    return gateway_deployment.stand_in("user", script)


@pytest.fixture(scope="module")
def verification(gateway_deployment: GatewayDeployment, script: Scripted) -> StandIn:
    return gateway_deployment.stand_in("verification", script)


@pytest.fixture(scope="module")
def client(gateway_deployment: GatewayDeployment, user: StandIn, verification: StandIn) -> Client:
    gateway = gateway_deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


@pytest.mark.parametrize("path,body,name,data", [
    ("/sdk/v1/users", CREATE, "create", CREATE),
    ("/sdk/v1/users", LINKER | {"linking": "none", "more": 1}, "create", LINKER | {"linking": "none"}),
    ("/sdk/v1/installs/i-1/link", {"authCode": "c"}, "link", {"installId": "i-1", "authCode": "c"}),
    ("/sdk/v1/installs/i-1/link", {"authCode": "c", "installId": "other"}, "link",
     {"installId": "i-1", "authCode": "c"}),
    ("/sdk/v1/installs/i-1/confirm-link", {"success": True}, "confirm-link", {"installId": "i-1", "success": True}),
    ("/sdk/v1/installs/i%2F1/reset", None, "reset", {"installId": "i/1"}),
    ("/users/auth-code", {"external_id": "ada"}, "request-auth-code", {"externalId": "ada"}),
])
def test_requests_become_commands(
    client: Client, user: StandIn, script: Scripted, path: str, body: Any, name: str, data: dict[str, Any]
) -> None:
    script.replies = [succeeded(USER)]
    is_backend = name == "request-auth-code"
    answer = client.post(path, body, "demo-backend") if is_backend else ask(client, path, body)
    assert answer.status == 200
    assert (user.last["type"], user.last["data"]) == (f"identity.user.{name}.v1", data)
    caller = ("api_key", "demo-backend") if is_backend else ("api_key", SDK) if name == "create" else (
        "app_user", USER["userId"])
    assert (user.last["authtype"], user.last["authid"]) == caller
    if name != "request-auth-code":
        assert answer.json == USER


def test_reading_an_install(client: Client, user: StandIn, script: Scripted) -> None:
    script.replies = [succeeded(USER)]
    assert ask(client, "/sdk/v1/installs/i-1", method="GET").json == USER
    assert (user.last["type"], user.last["data"]) == ("identity.user.get.v1", {"installId": "i-1"})


def test_an_install_speaks_for_itself(client: Client, user: StandIn, script: Scripted) -> None:
    """U40."""
    script.replies = [succeeded(USER)]
    token = shown(install_token(TOKEN_SECRET, "i-1", "life-1"))
    for method, call in [("GET", ""), ("POST", "/link"), ("POST", "/confirm-link"), ("POST", "/reset")]:
        assert client.send(method, f"/sdk/v1/installs/i-1{call}", None, token).status == 200
        assert (user.last["authtype"], user.last["authid"]) == ("app_install", "life-1")


def test_tokens_that_do_not_check_out(client: Client, user: StandIn, script: Scripted) -> None:
    """U37, U39."""
    script.replies = [succeeded(USER)]
    count = len(user.commands)
    secret = "another-secret-of-thirty-two-bytes-or-so"
    for token in [
        user_token(TOKEN_SECRET, "u", "i-1", age=600 + 400 * 86400 + 5),
        install_token(TOKEN_SECRET, "i-1", "life-1", age=600 + 400 * 86400 + 5),
        user_token(secret, "u", "i-1"), install_token(secret, "i-1", "life-1"),
        user_token(TOKEN_SECRET, "u", "i-1", app="other"), install_token(TOKEN_SECRET, "i-1", "c", app="nobody"),
    ]:
        assert client.send("GET", "/sdk/v1/installs/i-1", headers=shown(token)).status == 401
    assert len(user.commands) == count


def test_an_expired_token_reads_and_resets_for_a_while(client: Client, user: StandIn, script: Scripted) -> None:
    """U75."""
    script.replies = [succeeded(USER)]
    age = 600 + 399 * 86400
    for token in (install_token(TOKEN_SECRET, "i-1", "life-1", age=age), user_token(TOKEN_SECRET, "u", "i-1", age=age)):
        for method, call, status in [("GET", "", 200), ("POST", "/reset", 200), ("POST", "/link", 401),
                                     ("POST", "/confirm-link", 401)]:
            assert client.send(method, f"/sdk/v1/installs/i-1{call}", None, shown(token)).status == status
            assert (user.last["authtype"], user.last["authid"]) == ("app_install_expired", "life-1")


def test_an_authentication_code(client: Client, script: Scripted) -> None:
    """F4."""
    script.replies = [
        succeeded({"authenticationCode": "fd" * 64, "expiresAt": "2021-02-03T14:32:03.076Z"})]
    answer = client.post("/users/auth-code", {"external_id": "ada"}, "demo-backend")
    assert answer.json == {"authentication_code": "fd" * 64, "expires_at": "2021-02-03T14:32:03.076Z"}


def test_the_final_reply_is_waited_for(client: Client, user: StandIn, script: Scripted) -> None:
    script.replies = [pending({"installId": "i-1", "awaiting": "platform"}), succeeded(USER)]
    assert client.post("/sdk/v1/users", CREATE, SDK).json == USER
    script.replies = [pending({"installId": "i-1", "awaiting": "platform"}), rejected("USER_ALREADY_LINKED")]
    answer = ask(client, "/sdk/v1/installs/i-1/link", {"authCode": "c"})
    assert answer.json["code"] == "USER_ALREADY_LINKED"


@pytest.mark.parametrize("path,body", [("/sdk/v1/users", LINKER), ("/sdk/v1/installs/i-1/link", {"linking": "linker"})])
def test_while_the_linker_has_its_turn_the_device_is_told(
    client: Client, user: StandIn, script: Scripted, path: str, body: Any
) -> None:
    waiting = {"installId": "i-1", "awaiting": "linker", "installToken": INSTALL_TOKEN}
    script.replies = [pending(waiting)]
    at_once = Deadline(10)
    answer = ask(client, path, body)
    assert answer.status == 202 and answer.json == waiting
    assert at_once.left
    assert "expirytime" not in user.last, "the linker may take its time"
    script.replies = [pending({"installId": "i-1", "awaiting": "platform"}), rejected("USER_ALREADY_EXISTS")]
    assert ask(client, path, body).status == 409


def test_pending_for_good_times_out(gateway_deployment: GatewayDeployment, user: StandIn, script: Scripted) -> None:
    hasty = gateway_deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="1500").start().wait_ready()
    assert isinstance(hasty, Gateway)
    script.replies = [pending({"installId": "i-1", "awaiting": "platform"})]
    count = len(user.commands)
    answer = hasty.client.post("/sdk/v1/users", CREATE, SDK)
    assert answer.status == 504
    # The command may still be on its way.
    until(lambda: len(user.commands) > count, 10, "the command")
    assert answer.json["ref"] == user.last["id"]
    assert hasty.stop() == 0


@pytest.mark.parametrize("reason,status", [
    ("NO_USER", 404), ("USER_ALREADY_EXISTS", 409), ("AUTH_CODE_INVALID", 403), ("A_REASON_OF_TOMORROW", 400),
    ("INTERNAL_ERROR", 500)])
def test_problems(client: Client, script: Scripted, reason: str, status: int) -> None:
    script.replies = [rejected(reason, "data.installId is not right.")]
    answer = ask(client, "/sdk/v1/installs/i-1/reset")
    assert answer.status == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json
    assert problem.pop("title")
    assert problem == {
        "type": "about:blank" if reason == "A_REASON_OF_TOMORROW" else f"/openapi.json#/components/x-problems/{reason}",
        "status": status, "detail": "installId is not right.", "code": reason,
        "ref": answer.headers["X-Request-Id"]}


@pytest.mark.parametrize("method,path", [
    ("POST", "/sdk/v1/users"), ("GET", "/sdk/v1/installs/i"), ("POST", "/sdk/v1/installs/i/link"),
    ("POST", "/sdk/v1/installs/i/confirm-link"), ("POST", "/sdk/v1/installs/i/reset"),
    ("POST", "/v1/verification/login"), ("POST", "/v1/verification/login-identity"),
    ("POST", "/v1/verification/logout"), ("POST", "/v1/verification/check")])
def test_credentials(client: Client, user: StandIn, method: str, path: str) -> None:
    count = len(user.commands)
    assert client.send(method, path, {}).status == 401
    answer = client.post(path, {}, "demo-admin") if method == "POST" else client.get(path, "demo-admin")
    assert answer.status == 403 and answer.json["code"] == "INSUFFICIENT_SCOPE"
    assert client.send(method, path, {}, {"Authorization": "Bearer eyJhIjoxfQ.eyJhIjoxfQ.AAAA"}).status in (401, 403)
    assert len(user.commands) == count


@pytest.mark.parametrize("call,body,key", [
    ("login", {"deviceId": "d", "userId": "u", "userEmail": "e@x.y", "userName": "n", "userAuthToken": "t"}, SDK),
    ("login", {"deviceId": "d", "fullPrivacy": True}, SDK),
    ("login-identity", {"deviceId": "d", "identityToken": "a.b.c", "fullPrivacy": False}, SDK),
    ("logout", {"deviceId": "d"}, SDK),
    ("check", {"userId": "u", "userEmail": "e@x.y", "userAuthToken": "t"}, "demo-backend"),
])
def test_verification(
    client: Client, verification: StandIn, script: Scripted, call: str, body: dict[str, Any], key: str
) -> None:
    result = {"state": "verified", "mayFileIssues": True, "keyId": "k1", "mpid": "-7"}
    script.replies = [pending(), succeeded(result)]
    answer = client.post(f"/v1/verification/{call}", body | {"more": 1}, key)
    assert answer.status == 200 and answer.json == result
    assert (verification.last["type"], verification.last["data"]) == (f"identity.verification.{call}.v1", body)
    script.replies = [rejected("InvalidAuthToken", "The token does not check out.")]
    answer = client.post(f"/v1/verification/{call}", body, key)
    assert 400 <= answer.status < 500 and answer.json["code"] == "InvalidAuthToken"
