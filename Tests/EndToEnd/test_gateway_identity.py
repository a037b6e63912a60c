# SPDX-License-Identifier: Apache-2.0
"""The identity vendor's calls, subject by subject (row numbers in names are theirs), against a running gateway.
Behind it is a stand-in, which shows the command that a request became and gives any reply."""

import json
from typing import Any, Iterator

import pytest

from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer, compressed, signed
from identitybus_testkit.standin import StandIn, rejected, succeeded
from identitybus_testkit.waiting import until

MPID = "-7000000000000000002"
RESULT = {
    "mpid": MPID, "isLoggedIn": True, "isEphemeral": False, "matchedIdentities": {"customerid": "ABC123"},
    "context": None, "rule": "matched"}
WEB = {
    "client_sdk": {"platform": "web", "sdk_vendor": "mparticle", "sdk_version": "2.71.2"}, "context": None,
    "environment": "development", "request_id": "6c6a234f-0000-4000-8000-000000000001",
    "request_timestamp_ms": 1795251794133, "previous_mpid": None,
    "known_identities": {"customerid": "ABC123", "device_application_stamp": "das-1"}}
ALIAS = {
    "request_id": "r", "request_type": "alias", "environment": "development", "api_key": "demo-sdk",
    "data": {"source_mpid": "7000000000000000004", "destination_mpid": MPID, "start_unixtime_ms": 1795251864031,
             "end_unixtime_ms": 1795251864084, "scope": "device", "device_application_stamp": "das-1"}}
CALLS = ["identify", "login", "logout", "search"]
KEY_ONLY = {"x-mp-key": "demo-sdk"}


class Scripted:
    """The sync service's next reply."""

    def __init__(self) -> None:
        self.reply = succeeded(RESULT)

    def __call__(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        return [self.reply]


@pytest.fixture(scope="module")
def script() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def sync(gateway_deployment: GatewayDeployment, script: Scripted) -> StandIn:
    text = gateway_deployment.apps_file.read_text()
    at = text.index("keyOnly: true\n", text.index("  - id: linked\n"))
    cached = text[:at] + "keyOnly: true\n      maxAgeSeconds: 86400\n" + text[at + len("keyOnly: true\n"):]
    gateway_deployment.apps_file.write_text(cached.replace(
        "      - id: other-sdk\n",
        "      - id: vectors\n        secret: example-api-secret\n        scopes: [identity.sync]\n      - id: other-sdk\n"))
    return gateway_deployment.stand_in("sync", script)


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment, sync: StandIn) -> Gateway:
    gateway = gateway_deployment.gateway()
    gateway.start().wait_ready()
    return gateway


@pytest.fixture
def client(gateway: Gateway, script: Scripted) -> Iterator[Client]:
    script.reply = succeeded(RESULT)
    yield gateway.client


def post(client: Client, path: str, body: Any = WEB, headers: dict[str, str] | None = None) -> Answer:
    return client.send("POST", path, body, KEY_ONLY if headers is None else headers)


def data(sync: StandIn) -> dict[str, Any]:
    return sync.last["data"]


# 1. Routes


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("prefix", ["", "/identity", "/webevents", "/nativeevents"])
@pytest.mark.parametrize("query", ["", "?cb=1"])
def test_row_1_the_four_calls(client: Client, sync: StandIn, call: str, prefix: str, query: str) -> None:
    """F20, F21."""
    answer = post(client, f"{prefix}/v1/{call}{query}")
    assert answer.status == 200
    command = sync.last
    assert command["type"] == f"identity.sync.{call}.v1"
    assert (command["appid"], command["authtype"], command["authid"]) == ("demo", "api_key", "demo-sdk")
    assert command["data"] == {
        "deviceId": "das-1", "knownIdentities": WEB["known_identities"], "environment": "development",
        "requestId": WEB["request_id"], "requestTimestampMs": 1795251794133}


@pytest.mark.parametrize("path", [
    f"/v1/{MPID}/modify", f"/identity/v1/{MPID}/modify", "/v1/7000000000000000001/modify?cb=1"])
def test_row_1_modify(client: Client, sync: StandIn, path: str) -> None:
    """F20."""
    change = {"old_value": "h@example.com", "new_value": None, "identity_type": "email"}
    assert post(client, path, WEB | {"identity_changes": [change]}).status == 200
    assert sync.last["type"] == "identity.sync.modify.v1"
    assert data(sync)["mpid"] in path
    assert data(sync)["changes"] == [{"identityType": "email", "oldValue": "h@example.com", "newValue": None}]


@pytest.mark.parametrize("path", [
    "/v1/identity/demo-sdk/alias", "/v1/identity/demo-sdk/Alias", "/webevents/v1/identity/demo-sdk/Alias",
    "/nativeevents/v1/identity/demo-sdk/alias"])
def test_row_1_alias(client: Client, sync: StandIn, path: str) -> None:
    """F20."""
    assert post(client, path, ALIAS, {}).status == 202
    assert sync.last["type"] == "identity.sync.alias.v1"
    assert data(sync) == {
        "sourceMPID": "7000000000000000004", "destinationMPID": MPID, "startUnixtimeMs": 1795251864031,
        "endUnixtimeMs": 1795251864084, "scope": "device", "deviceApplicationStamp": "das-1"}


# 2. Authentication


@pytest.mark.parametrize("date", [
    "Thu, 06 Nov 2025 19:37:01 GMT", "Thu, 06 Nov 2025 14:37:01 EST", "20170712T224127Z", "2025-11-06T19:37:01Z",
    "not a date at all"])
@pytest.mark.parametrize("prefix", ["", "/identity"])
def test_row_2_signature(client: Client, date: str, prefix: str) -> None:
    """F23."""
    body = json.dumps(WEB).encode()
    answer = post(client, f"{prefix}/v1/login", body, signed("other-sdk", "/v1/login", body, date))
    assert answer.status == 200


# The vendor's own example and another one (F23): the signatures were computed elsewhere.
VECTORS = [
    ("20170712T224127Z", "/v1/identify",
     b'{"client_sdk":{"platform":"android","sdk_vendor":"mparticle","sdk_version":"5.0.0"},"environment":"development",'
     b'"request_timestamp_ms":1499875715564,"request_id":"ad58a7c1-cf35-4be5-8c42-a09989f85cc1","known_identities":'
     b'{"android_uuid":"f924f1e5707b34b7"}}', "b795bc485a38e1aff3c4897be8120a7c87d27b359005e59b815db817268c9655"),
    ("Thu, 06 Nov 2025 19:37:01 GMT", "/v1/-7000000000000000002/modify", b'{"identity_changes":[]}',
     "5a448e0c6c72584ad3292db0fb20a2e48e62cade14a1fb9bf82adad3b9bd5be4"),
]


@pytest.mark.parametrize("date,path,body,signature", VECTORS)
@pytest.mark.parametrize("prefix", ["", "/identity"])
def test_row_2_known_answers(
    client: Client, date: str, path: str, body: bytes, signature: str, prefix: str
) -> None:
    """F23."""
    headers = {"x-mp-key": "vectors", "Date": date, "x-mp-signature": signature}
    assert post(client, prefix + path, body, headers).status == 200
    assert post(client, prefix + path, body + b" ", headers).status == 401


def test_row_2_signature_over_the_body_before_compression(client: Client, sync: StandIn) -> None:
    """F23."""
    body = json.dumps(WEB).encode()
    headers = signed("other-sdk", "/v1/login", body) | {"Content-Encoding": "gzip"}
    assert post(client, "/v1/login", compressed(body), headers).status == 200
    assert data(sync)["knownIdentities"] == WEB["known_identities"]


def test_row_2_signature_with_the_query_or_without(client: Client) -> None:
    """F23."""
    body = json.dumps(WEB).encode()
    for path in ["/v1/search", "/v1/search?cb=1"]:
        assert post(client, "/v1/search?cb=1", body, signed("other-sdk", path, body)).status == 200


def test_row_2_alias_as_each_client_authenticates(client: Client) -> None:
    body = json.dumps(ALIAS | {"api_key": "other-sdk"}).encode()
    path = "/v1/identity/other-sdk/alias"
    ios = signed("other-sdk", path, body)
    android = {name: value for name, value in ios.items() if name != "x-mp-key"}
    assert post(client, "/nativeevents" + path, body, ios).status == 202
    zipped = android | {"Content-Encoding": "gzip"}
    assert post(client, path, compressed(body), zipped).status == 202
    assert post(client, path, body, {}).status == 401, "this app takes no key alone"
    assert post(client, "/v1/identity/demo-sdk/Alias", ALIAS, {}).status == 202, "this one does"


def test_row_2_basic_and_key_only(client: Client, sync: StandIn) -> None:
    """F22."""
    assert post(client, "/v1/identify", WEB, basic("other-sdk")).status == 200
    assert sync.last["appid"] == "other"
    for key in ["demo-sdk", "linked-sdk", "isolated-sdk", "best-sdk"]:
        assert post(client, "/v1/identify", WEB, {"x-mp-key": key}).status == 200
    for key in ["other-sdk", "support-sdk"]:
        assert post(client, "/v1/identify", WEB, {"x-mp-key": key}).status == 401


def wrong_credentials() -> list[dict[str, str]]:
    body = json.dumps(WEB).encode()
    good = signed("other-sdk", "/v1/identify", body)
    return [
        {}, {"x-mp-key": "nobody"}, {"x-mp-key": ""}, basic("other-sdk", "wrong"), basic("nobody"),
        {"Authorization": "Basic %%%"}, {"Authorization": "Basic b3RoZXItc2Rr"}, bearer("other-sdk"),
        good | {"x-mp-signature": "0" * 64}, good | {"x-mp-signature": good["x-mp-signature"][:-1]},
        good | {"x-mp-signature": ""}, good | {"Date": "Thu, 06 Nov 2025 19:37:02 GMT"},
        {name: value for name, value in good.items() if name != "Date"},
        good | {"x-mp-key": "demo-sdk"}, signed("other-sdk", "/identity/v1/identify", body),
        signed("other-sdk", "/v1/identify", body + b" "), signed("other-sdk", "/v1/identify", body, secret="wrong"),
        # A key that may be shown alone is still wrong with a wrong signature.
        {"x-mp-key": "demo-sdk", "Date": "x", "x-mp-signature": "0" * 64},
        basic("other-sdk") | {"x-mp-key": "demo-sdk"},
    ]


@pytest.mark.parametrize("headers", wrong_credentials())
def test_row_2_wrong_credentials_get_401_without_a_body(client: Client, sync: StandIn, headers: dict[str, str]) -> None:
    """F22, F27."""
    count = len(sync.commands)
    answer = post(client, "/v1/identify", json.dumps(WEB).encode(), headers)
    assert (answer.status, answer.body) == (401, b"")
    assert len(sync.commands) == count


def test_row_2_a_key_without_the_scope_gets_403_without_a_body(client: Client) -> None:
    """F27."""
    answer = post(client, "/v1/identify", WEB, basic("demo-backend"))
    assert (answer.status, answer.body) == (403, b"")


def test_row_2_alias_with_two_different_keys(client: Client) -> None:
    assert post(client, "/v1/identity/demo-sdk/alias", ALIAS, {"x-mp-key": "linked-sdk"}).status == 401
    answer = post(client, "/v1/identity/linked-sdk/alias", ALIAS, basic("linked-sdk"))
    assert answer.status == 400 and answer.json["code"] == "ALIAS_ERROR"


# 3. Compression


@pytest.mark.parametrize("path,body", [
    ("/v1/identify", WEB), (f"/v1/{MPID}/modify", {"identity_changes": []}), ("/v1/identity/demo-sdk/alias", ALIAS)])
def test_row_3_gzip(client: Client, path: str, body: Any) -> None:
    assert post(client, path, compressed(body), KEY_ONLY | {"Content-Encoding": "gzip"}).status in (200, 202)


# 4. MPIDs


@pytest.mark.parametrize("sent,expected", [
    ("7000000000000000001", "7000000000000000001"), (7000000000000000001, "7000000000000000001"),
    (-9223372036854775808, "-9223372036854775808"), ("9223372036854775807", "9223372036854775807"),
    (9007199254740993, "9007199254740993"), (None, None), ("", None), (0, None), ("0", None)])
def test_row_4_mpids_as_text_or_number(client: Client, sync: StandIn, sent: Any, expected: Any) -> None:
    """F24, F38."""
    answer = post(client, "/v1/login", WEB | {"previous_mpid": sent})
    assert answer.status == 200 and answer.json["mpid"] == MPID and isinstance(answer.json["mpid"], str)
    assert data(sync).get("previousMPID") == expected
    if expected is not None:
        request = ALIAS | {"data": ALIAS["data"] | {"source_mpid": sent, "destination_mpid": sent}}
        assert post(client, "/v1/identity/demo-sdk/alias", request, {}).status == 202
        assert (data(sync)["sourceMPID"], data(sync)["destinationMPID"]) == (expected, expected)


@pytest.mark.parametrize("wrong", ["12x", 1.5, 9223372036854775808, "9223372036854775808", True, [], {}, 1e3])
def test_row_4_what_is_no_mpid(client: Client, wrong: Any) -> None:
    assert post(client, "/v1/login", WEB | {"previous_mpid": wrong}).status == 400
    request = ALIAS | {"data": ALIAS["data"] | {"source_mpid": wrong}}
    assert post(client, "/v1/identity/demo-sdk/alias", request, {}).status == 400


@pytest.mark.parametrize("mpid", ["0", "abc", "9223372036854775808", "1.5", "null"])
def test_row_4_what_is_no_mpid_in_a_path(client: Client, mpid: str) -> None:
    assert post(client, f"/v1/{mpid}/modify", {"identity_changes": []}).status == 400


def test_row_4_a_number_from_the_service_is_written_as_text(client: Client, script: Scripted) -> None:
    script.reply = succeeded(RESULT | {"mpid": 9007199254740993})
    assert post(client, "/v1/login").json["mpid"] == "9007199254740993"


# 5. What clients send


@pytest.mark.parametrize("request_id", [{}, {"requestId": "r-1"}, {"source_request_id": "r-1"}, {"request_id": "r-1"}])
def test_row_5_request_ids(client: Client, sync: StandIn, request_id: dict[str, str]) -> None:
    body = {name: WEB[name] for name in ("environment", "known_identities")} | request_id
    assert post(client, "/v1/identify", body).status == 200
    assert data(sync).get("requestId") == ("r-1" if request_id else None)
    assert "requestTimestampMs" not in data(sync)


@pytest.mark.parametrize("context", [None, "null", "", "abc", 7, {"a": 1}, [1], True, "x" * 5000])
def test_row_5_any_context(client: Client, sync: StandIn, context: Any) -> None:
    """F24."""
    assert post(client, "/v1/identify", WEB | {"context": context}).status == 200
    expected = context if isinstance(context, str) and len(context) <= 4096 else None
    assert data(sync).get("context") == expected


@pytest.mark.parametrize("odd", [{"request_id": 7}, {"request_timestamp_ms": "soon"}, {"request_id": "x" * 300},
                                 {"client_sdk": None}, {"unknown": {"a": []}}, {"request_timestamp_ms": 1.5}])
def test_row_5_odd_members_are_no_reason_to_refuse(client: Client, odd: dict[str, Any]) -> None:
    """F24."""
    assert post(client, "/v1/identify", WEB | odd).status == 200


def test_row_5_null_identities_and_changes_without_values(client: Client, sync: StandIn) -> None:
    """F24."""
    identities = {"customerid": None, "email": "a@b.c", "device_application_stamp": "das-2"}
    assert post(client, "/v1/login", WEB | {"known_identities": identities}).status == 200
    assert data(sync)["knownIdentities"] == identities
    changes = [{"identity_type": "email"}, {"identity_type": "other", "old_value": "a", "new_value": None}]
    assert post(client, f"/v1/{MPID}/modify", {"identity_changes": changes}).status == 200
    assert data(sync)["changes"] == [
        {"identityType": "email"}, {"identityType": "other", "oldValue": "a", "newValue": None}]


@pytest.mark.parametrize("identities,device", [
    ({"ios_idfv": "9876"}, "ios_idfv:9876"), ({"roku_aid": "8765", "customerid": "a"}, "roku_aid:8765"),
    ({"ios_idfv": "1", "device_application_stamp": "das"}, "das"), ({"device_application_stamp": None}, "request:")])
def test_row_5_the_device(client: Client, sync: StandIn, identities: dict[str, Any], device: str) -> None:
    assert post(client, "/v1/identify", WEB | {"known_identities": identities}).status == 200
    assert data(sync)["deviceId"].startswith(device)


def test_row_5_a_backend_without_a_device_is_a_device_of_its_own(client: Client, sync: StandIn) -> None:
    devices = []
    for identities in [{"customerid": "a", "email": "b"}, {"email": "b", "customerid": "a"}, {"customerid": "b"}]:
        assert post(client, "/v1/identify", WEB | {"known_identities": identities}).status == 200
        devices.append(data(sync)["deviceId"])
    assert devices[0] == devices[1] != devices[2]


# 6. Successes


@pytest.mark.parametrize("call", CALLS)
def test_row_6_the_answer(client: Client, script: Scripted, call: str) -> None:
    """F25."""
    script.reply = succeeded(RESULT | {"context": "abc", "previousMPID": "1", "previousMismatch": True})
    answer = post(client, f"/v1/{call}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json == {
        "context": "abc", "mpid": MPID, "matched_identities": {"customerid": "ABC123"}, "is_ephemeral": False,
        "is_logged_in": True}


def test_row_6_modify_tells_who_was_modified(client: Client, script: Scripted) -> None:
    """F25."""
    changes = [{"identityType": "email", "modifiedMPID": MPID}, {"identityType": "email", "modifiedMPID": "5"}]
    script.reply = succeeded(RESULT | {"changeResults": changes})
    answer = post(client, f"/v1/{MPID}/modify", {"identity_changes": []})
    assert answer.status == 200
    assert answer.json == {"mpid": MPID, "is_logged_in": True, "change_results": [
        {"identity_type": "email", "modified_mpid": MPID}, {"identity_type": "email", "modified_mpid": "5"}]}


def test_row_6_alias_is_accepted_without_a_body(client: Client, script: Scripted) -> None:
    """F38."""
    script.reply = succeeded({"aliasId": "a", "isScheduled": False})
    answer = post(client, "/v1/identity/demo-sdk/Alias", ALIAS, {})
    assert (answer.status, answer.body) == (202, b"")


# 7. Errors


@pytest.mark.parametrize("reason,status", [
    ("LOOKUP_ERROR", 400), ("VALIDATION_ERROR", 400), ("NOT_FOUND_ERROR", 404), ("INTERNAL_ERROR", 500)])
def test_row_7_both_spellings(client: Client, script: Scripted, reason: str, status: int) -> None:
    """F27, F28."""
    script.reply = rejected(reason, "knownIdentities is empty.")
    answer = post(client, "/v1/login")
    assert answer.status == status
    errors = [{"code": reason, "message": "knownIdentities is empty."}]
    assert answer.json == {
        "Errors": errors, "errors": errors, "ErrorCode": reason, "StatusCode": status,
        "RequestId": answer.headers["X-Request-Id"]}


def test_row_7_alias_is_flat_as_well(client: Client, script: Scripted) -> None:
    """F27."""
    script.reply = rejected("ALIAS_ERROR", "The MPIDs are the same.")
    answer = post(client, "/v1/identity/demo-sdk/alias", ALIAS, {})
    assert answer.status == 400
    assert answer.json["code"] == "ALIAS_ERROR" and answer.json["message"] == "The MPIDs are the same."
    assert answer.json["errors"] == answer.json["Errors"]


def test_row_7_aliasing_not_provisioned_is_403_without_a_body(client: Client, script: Scripted) -> None:
    """S39, F39."""
    script.reply = rejected("ALIASING_NOT_PROVISIONED")
    answer = post(client, "/v1/identity/demo-sdk/alias", ALIAS, {})
    assert (answer.status, answer.body) == (403, b"")


def test_row_7_our_words_for_a_member_become_theirs(client: Client, script: Scripted) -> None:
    script.reply = rejected("INVALID_REQUEST", "data.knownIdentities.foo: no such identity type.")
    answer = post(client, "/v1/login")
    assert answer.json["ErrorCode"] == "VALIDATION_ERROR"
    assert answer.json["Errors"][0]["message"] == "known_identities.foo: no such identity type."


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"known_identities":[]}', b'{"known_identities":"a"}'])
def test_row_7_bodies_that_are_refused(client: Client, script: Scripted, body: bytes) -> None:
    script.reply = rejected("LOOKUP_ERROR", "knownIdentities is empty.")
    answer = post(client, "/v1/login", body)
    assert answer.status == 400 and answer.json["Errors"] == answer.json["errors"]


# 8. Limits


@pytest.mark.parametrize("path,body", [("/v1/login", WEB), ("/v1/identity/demo-sdk/alias", ALIAS)])
def test_row_8_throttled(client: Client, script: Scripted, path: str, body: Any) -> None:
    """F29."""
    script.reply = rejected("THROTTLED", "Too many.")
    answer = post(client, path, body)
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) >= 1 and answer.headers["X-mp-rate-limit-exceeded"]


@pytest.mark.parametrize("path,body", [
    ("/v1/login", WEB), (f"/v1/{MPID}/modify", {"identity_changes": []}), ("/v1/identity/demo-sdk/alias", ALIAS)])
def test_row_8_how_much_of_the_limit_is_used(client: Client, path: str, body: Any) -> None:
    """F29."""
    assert 0 <= int(post(client, path, body).headers["X-mp-rate-limit-percentage-used"]) <= 100


# 9. The clients' caches


@pytest.mark.parametrize("call", CALLS)
def test_row_9_only_apps_that_say_so_are_cached(client: Client, call: str) -> None:
    """F42."""
    assert post(client, f"/v1/{call}").headers["X-MP-Max-Age"] is None
    age = post(client, f"/v1/{call}", WEB, {"x-mp-key": "linked-sdk"}).headers["X-MP-Max-Age"]
    assert age == ("86400" if call in ("identify", "login") else None)


# 10. Browsers


@pytest.mark.parametrize("path", ["/v1/identify", f"/v1/{MPID}/modify", "/v1/identity/demo-sdk/Alias",
                                  "/v3/JS/demo-sdk/events"])
def test_row_10_preflight(client: Client, path: str) -> None:
    """F41."""
    answer = client.send("OPTIONS", path, headers={
        "Origin": "https://shop.example", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, x-mp-key"})
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    allowed = answer.headers["Access-Control-Allow-Headers"].replace(" ", "").split(",")
    assert {"content-type", "x-mp-key"} <= set(allowed)


def test_row_10_answers_and_errors_are_readable(client: Client) -> None:
    """F41."""
    for answer in [post(client, "/v1/login"), post(client, "/v1/login", headers={})]:
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "X-MP-Max-Age" in answer.headers["Access-Control-Expose-Headers"]
        assert len(answer.headers["X-MP-Trace-Id"]) == 32


# Rows 11 and 12 are the sync service's: see test_gateway_services.py.


@pytest.mark.parametrize("path", ["/v3/JS/demo-sdk/events", "/webevents/v3/JS/demo-sdk/events",
                                  "/v1/JS/demo-sdk/Events", "/v2/JS/demo-sdk/events"])
def test_event_batches_are_accepted_and_thrown_away(client: Client, sync: StandIn, path: str) -> None:
    """F44."""
    count = len(sync.commands)
    answer = client.send("POST", path, b'{"events":[]}', {"Content-Type": "text/plain;charset=UTF-8"})
    assert (answer.status, answer.body) == (202, b"")
    assert len(sync.commands) == count


def test_the_same_key_is_the_same_command(client: Client, sync: StandIn) -> None:
    key = fresh("key")
    for app in ["demo-sdk", "linked-sdk"]:
        ids = []
        for _ in range(2):
            assert post(client, "/v1/login", WEB, {"x-mp-key": app, "Idempotency-Key": key}).status == 200
            ids.append(sync.last["id"])
        assert ids[0] == ids[1]
    assert len({record.envelope["id"] for record in sync.commands[-4:]}) == 2, "another app, another command"
    assert "expirytime" not in sync.last
    assert post(client, "/v1/login").status == 200
    assert sync.last["expirytime"] > sync.last["time"]


def test_nothing_of_a_person_is_logged(client: Client, gateway: Gateway) -> None:
    secret = fresh("private")
    body = WEB | {"known_identities": {"email": f"{secret}@x.y", "device_application_stamp": secret}}
    answer = post(client, f"/v1/login?email={secret}", body)
    assert answer.status == 200
    until(lambda: gateway.access(answer.headers["X-Request-Id"]), 10, "the access log's line")
    assert secret not in gateway.log.read_text()
