# SPDX-License-Identifier: Apache-2.0
"""The whole platform over HTTP: a backend, a device and an identity SDK against the gateway and every service."""

import base64
import hashlib
import hmac
import json
import subprocess
import uuid
from typing import Any

import pytest

from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import SERVICES, TOKEN_SECRET, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer, signed
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.tokens import claims, install_token, shown
from identitybus_testkit.waiting import until

PHONE = {"kind": "phone", "platform": "ios"}
TABLET = {"kind": "tablet", "platform": "android"}


@pytest.fixture(scope="module")
def client(gateway_deployment: GatewayDeployment) -> Client:
    services = [gateway_deployment.process(name).start() for name in SERVICES]
    for service in services:
        service.wait_ready()
    gateway = gateway_deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


def good(answer: Answer) -> Any:
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json


# Linking and devices


def code_for(client: Client, external_id: str) -> str:
    return str(good(client.post("/users/auth-code", {"external_id": external_id}, "demo-backend"))[
        "authentication_code"])


def create(client: Client, install: str, device: dict[str, str] = PHONE, **more: Any) -> Answer:
    return client.post("/sdk/v1/users", {"installId": install, "device": device} | more, "demo-sdk")


def of_user(client: Client, method: str, user: Any, call: str = "", body: Any = None) -> Answer:
    """A call about an install with its user's token."""
    return client.send(
        method, f"/sdk/v1/installs/{user['installId']}{call}", body, shown(user["token"]["tokenId"]))


def of_install(client: Client, method: str, answer: Any, call: str = "", body: Any = None) -> Answer:
    """A call about an install with its own token."""
    return client.send(
        method, f"/sdk/v1/installs/{answer['installId']}{call}", body, shown(answer["installToken"]["tokenId"]))


def test_a_user_is_created_with_a_code_and_restored_on_the_next_device(client: Client) -> None:
    """U13, U14."""
    external_id, first, second = fresh("ext"), fresh("install"), fresh("install")
    user = good(create(client, first, authCode=code_for(client, external_id)))
    assert user["isLinked"] and user["isRemoteEnabled"] and user["token"]["tokenId"]
    restored = good(create(client, second, authCode=code_for(client, external_id)))
    assert restored["userId"] == user["userId"] and restored["isRemoteEnabled"]

    def deactivated() -> bool:
        return not good(of_user(client, "GET", user))["isRemoteEnabled"]

    until(deactivated, 10, "the first device is told")
    tablet = good(create(client, fresh("install"), TABLET, authCode=code_for(client, external_id)))
    assert tablet["userId"] == user["userId"] and not tablet["isRemoteEnabled"]


def test_a_code_works_once_and_only_once(client: Client) -> None:
    """U4."""
    code = code_for(client, fresh("ext"))
    good(create(client, fresh("install"), authCode=code))
    again = create(client, fresh("install"), authCode=code)
    wrong = create(client, fresh("install"), authCode="0" * 128)
    assert again.status == wrong.status == 403
    assert again.json["detail"] == wrong.json["detail"]
    assert again.json["code"] == wrong.json["code"] == "AUTH_CODE_INVALID", "used or unknown: nobody's business"


def test_a_linker_links_through_the_backend(client: Client) -> None:
    """U17."""
    install, external_id = fresh("install"), fresh("ext")
    pending = create(client, install, appSecret="demo-app-secret", linking="linker")
    assert pending.status == 202 and pending.json.keys() == {"installId", "awaiting", "installToken"}
    assert (pending.json["installId"], pending.json["awaiting"]) == (install, "linker")

    # The device is told when the link service knows the install.
    user = good(client.post(f"/v2/users/{install}/link", {"external_id": external_id}, "demo-backend"))
    by_key = client.post(f"/sdk/v1/installs/{install}/confirm-link", {"success": True}, "demo-sdk")
    assert by_key.status == 403 and by_key.json["code"] == "USER_TOKEN_REQUIRED"
    confirmed = good(of_install(client, "POST", pending.json, "/confirm-link", {"success": True}))
    assert confirmed["userId"] == user["id"] and confirmed["isLinked"]
    assert good(of_install(client, "GET", pending.json))["userId"] == user["id"]


def test_a_linker_that_fails(client: Client) -> None:
    install = fresh("install")
    pending = create(client, install, appSecret="demo-app-secret", linking="linker")
    answer = of_install(client, "POST", pending.json, "/confirm-link", {"success": False})
    assert answer.status == 409 and answer.json["code"] == "APP_SIDE_LINKING_FAILED"


def test_the_same_key_creates_once(client: Client) -> None:
    install, key, body = fresh("install"), str(uuid.uuid4()), {"authCode": code_for(client, fresh("ext"))}
    body |= {"installId": install, "device": PHONE}
    first = client.post("/sdk/v1/users", body, "demo-sdk", Idempotency_Key=key)
    again = client.post("/sdk/v1/users", body, "demo-sdk", Idempotency_Key=key)
    assert good(first) == good(again)


def test_reset_and_link_later(client: Client) -> None:
    """U25, U29."""
    install, external_id = fresh("install"), fresh("ext")
    user = good(create(client, install, appSecret="demo-app-secret", linking="none"))
    assert not user["isLinked"]
    linked = good(of_install(client, "POST", user, "/link", {"authCode": code_for(client, external_id)}))
    assert linked["userId"] == user["userId"] and linked["isLinked"]
    assert good(of_user(client, "POST", linked, "/reset")) == {"installId": install}
    # Nobody is there, and the tokens of who was there open nothing any more.
    for gone in [of_user(client, "GET", linked), of_install(client, "GET", linked), of_install(client, "GET", user)]:
        assert gone.status == 403 and gone.json["code"] == "USER_TOKEN_NOT_ALLOWED"
    restored = good(create(client, install, authCode=code_for(client, external_id)))
    assert restored["userId"] == user["userId"]


def test_a_users_token_opens_its_own_installs_only(client: Client) -> None:
    """U38."""
    mine, other = fresh("install"), fresh("install")
    token = good(create(client, mine, authCode=code_for(client, fresh("ext"))))["token"]["tokenId"]
    good(create(client, other, authCode=code_for(client, fresh("ext"))))
    shown = {"Authorization": f"Bearer {token}"}
    assert good(client.send("GET", f"/sdk/v1/installs/{mine}", headers=shown))["installId"] == mine
    refused = client.send("GET", f"/sdk/v1/installs/{other}", headers=shown)
    assert refused.status == 403 and refused.json["code"] == "USER_TOKEN_NOT_ALLOWED"
    for path in ["/users/auth-code", f"/v2/users/{mine}/link"]:
        answer = client.send("POST", path, {"external_id": "ada"}, shown)
        assert answer.status == 403 and answer.json["errorCode"] == "USER_TOKEN_NOT_ALLOWED"
    forged = {"Authorization": f"Bearer {token[:-4]}AAAA"}
    assert client.send("GET", f"/sdk/v1/installs/{mine}", headers=forged).status == 401


def test_who_comes_back_after_a_month_is_not_locked_out(client: Client) -> None:
    """U75, U78."""
    install = fresh("install")
    user = good(create(client, install, appSecret="demo-app-secret", linking="none"))
    life = claims(user["installToken"]["tokenId"], "install+jwt")["creation"]
    assert claims(user["token"]["tokenId"])["creation"] == life
    old = shown(install_token(TOKEN_SECRET, install, life, age=30 * 86400))
    again = good(client.send("GET", f"/sdk/v1/installs/{install}", None, old))
    assert again["userId"] == user["userId"]
    assert good(of_user(client, "GET", again))["userId"] == user["userId"]
    # Of another life it opens nothing.
    assert client.send("POST", f"/sdk/v1/installs/{install}/reset", None, old).status == 200
    good(create(client, install, appSecret="demo-app-secret", linking="none"))
    assert client.send("GET", f"/sdk/v1/installs/{install}", None, old).status == 403


def test_the_sdks_key_opens_no_install(client: Client) -> None:
    """U41. It is in every copy of the app: who has it must not read, link or reset a stranger's phone."""
    install, code = fresh("install"), code_for(client, fresh("ext"))
    user = good(create(client, install, authCode=code))
    for method, call, body in [
        ("GET", "", None), ("POST", "/reset", None), ("POST", "/link", {"linking": "linker"}),
        ("POST", "/confirm-link", {"success": True}),
    ]:
        for path in [install, fresh("unknown")]:
            answer = client.send(method, f"/sdk/v1/installs/{path}{call}", body, bearer("demo-sdk"))
            assert answer.status == 403 and answer.json["code"] == "USER_TOKEN_REQUIRED", call
            assert "token" in answer.json["detail"]
    # Nor does creating again tell who is there; but the device may ask again with its code.
    for means in [{"appSecret": "demo-app-secret", "linking": "none"}, {"appSecret": "demo-app-secret", "linking": "linker"},
                  {"authCode": code_for(client, fresh("ext"))}, {"authCode": "0" * 128}]:
        again = create(client, install, **means)
        assert again.status == 409 and again.json["code"] == "USER_ALREADY_EXISTS"
        assert user["userId"] not in again.body.decode() and "oken" not in again.body.decode()
    assert good(create(client, install, authCode=code))["userId"] == user["userId"]
    assert good(of_user(client, "GET", user))["userId"] == user["userId"]


def test_the_next_users_data_is_not_opened_by_what_was_issued_before(client: Client) -> None:
    """U40."""
    install = fresh("install")
    first = good(create(client, install, authCode=code_for(client, fresh("ext"))))
    good(of_install(client, "POST", first, "/reset"))
    second = good(create(client, install, authCode=code_for(client, fresh("ext"))))
    assert second["userId"] != first["userId"]
    for ask in (of_user, of_install):
        for method, call in [("GET", ""), ("POST", "/reset")]:
            answer = ask(client, method, first, call)
            assert answer.status == 403 and answer.json["code"] == "USER_TOKEN_NOT_ALLOWED"
        assert good(ask(client, "GET", second))["userId"] == second["userId"]
    # Nor does an install token open anything but installs.
    for path, body in [("/v1/verification/login", {"deviceId": "d"}), ("/users/auth-code", {"external_id": "ada"})]:
        assert client.send("POST", path, body, shown(second["installToken"]["tokenId"])).status == 403


def test_the_lines_of_the_documentation(client: Client) -> None:
    page = (REPOSITORY / "docs" / "gateway.md").read_text().split("## Try it")[1]
    lines = "\n".join(line[4:] for line in page.splitlines() if line.startswith("    "))
    assert lines.count("curl -s ") == 3
    script = lines.replace("$(cat .identitybus/gateway)", client.address).replace(
        "curl -s ", "curl -sS -o /dev/null -w '%{http_code} ' ")
    run = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=60)
    assert (run.stdout.split(), run.stderr) == (["200"] * 3, "")


# Identity: the worked table of the conversion strategy (F35)


def sync(client: Client, call: str, identities: dict[str, Any], key: str = "demo-sdk") -> Answer:
    body = json.dumps({"environment": "development", "known_identities": identities}).encode()
    return client.send("POST", f"/v1/{call}", body, signed(key, f"/v1/{call}", body))


def test_the_worked_table_of_profile_conversion(client: Client) -> None:
    """S23, S32, S36."""
    idfv, roku, customer = fresh("9876"), fresh("8765"), fresh("customer")
    hyde, jekyll = f"{fresh('ed.hyde')}@example.com", f"{fresh('h.jekyll')}@example.com"
    anonymous = good(sync(client, "identify", {"ios_idfv": idfv}))
    assert not anonymous["is_logged_in"]
    known = good(sync(client, "login", {"customerid": customer, "email": hyde, "ios_idfv": idfv}))
    assert known["mpid"] == anonymous["mpid"] and known["is_logged_in"]
    logged_out = good(sync(client, "logout", {"ios_idfv": idfv}))
    assert logged_out["mpid"] != known["mpid"] and not logged_out["is_logged_in"]
    fed = good(sync(client, "identify", {"email": jekyll}))
    assert fed["mpid"] not in (known["mpid"], logged_out["mpid"]) and fed["is_logged_in"]
    again = good(sync(client, "login", {"customerid": customer, "email": hyde, "ios_idfv": idfv}))
    assert again["mpid"] == known["mpid"]
    # Row 12 of the checklist: only modify takes a unique identity from another profile, which is orphaned.
    body = json.dumps({"identity_changes": [
        {"identity_type": "email", "old_value": hyde, "new_value": jekyll}]}).encode()
    path = f"/v1/{known['mpid']}/modify"
    modified = good(client.send("POST", path, body, signed("demo-sdk", path, body)))
    assert modified["mpid"] == known["mpid"] and modified["is_logged_in"]
    assert {entry["modified_mpid"] for entry in modified["change_results"]} == {known["mpid"], fed["mpid"]}
    new_device = good(sync(client, "identify", {"roku_aid": roku}))
    assert new_device["mpid"] not in (known["mpid"], logged_out["mpid"], fed["mpid"])
    assert good(sync(client, "login", {"customerid": customer, "email": jekyll, "roku_aid": roku}))["mpid"] == known["mpid"]
    found = good(sync(client, "search", {"email": jekyll}))
    assert found["mpid"] == known["mpid"] and found["matched_identities"] == {"email": jekyll}


def test_row_11_mpids_are_random(client: Client) -> None:
    """S2, F26."""
    mpids = [int(good(sync(client, "identify", {"ios_idfv": fresh("idfv")}))["mpid"]) for _ in range(40)]
    assert 0 not in mpids and all(-(2**63) <= mpid < 2**63 for mpid in mpids)
    assert len({mpid & 0xFFFFFFFF for mpid in mpids}) == 40 and min(mpids) < 0 < max(mpids)


def test_nobody_is_found(client: Client) -> None:
    answer = sync(client, "search", {"email": f"{fresh('nobody')}@x.y"})
    assert answer.status == 404 and answer.json["ErrorCode"] == "NOT_FOUND_ERROR"


@pytest.mark.parametrize("identities,code", [
    ({}, "LOOKUP_ERROR"), ({"email": None}, "LOOKUP_ERROR"), ({"no_such_type": "a"}, "VALIDATION_ERROR"),
    ({"email": 7}, "VALIDATION_ERROR"), ({"email": ""}, "VALIDATION_ERROR"), ({"email": "x" * 751}, "VALIDATION_ERROR")])
def test_identities_that_are_refused(client: Client, identities: dict[str, Any], code: str) -> None:
    answer = sync(client, "login", identities)
    assert answer.status == 400 and answer.json["ErrorCode"] == code
    assert "data." not in answer.json["Errors"][0]["message"]


def test_aliases(client: Client) -> None:
    """S39, S44."""
    source = good(sync(client, "identify", {"ios_idfv": fresh("idfv")}))["mpid"]
    target = good(sync(client, "identify", {"ios_idfv": fresh("idfv")}))["mpid"]

    def alias(data: dict[str, Any]) -> Answer:
        return client.post("/v1/identity/demo-sdk/Alias", {"request_type": "alias", "data": data})

    assert alias({"source_mpid": source, "destination_mpid": int(target)}).status == 202
    for wrong in [
        {"source_mpid": source, "destination_mpid": source}, {"source_mpid": source, "destination_mpid": "17"},
        {"source_mpid": source}, {"source_mpid": 0, "destination_mpid": target},
        {"source_mpid": source, "destination_mpid": target, "start_unixtime_ms": 5, "end_unixtime_ms": 4},
    ]:
        answer = alias(wrong)
        assert answer.status == 400 and answer.json["code"] == "ALIAS_ERROR", wrong


def test_an_unknown_profile_is_not_modified(client: Client) -> None:
    answer = client.post("/v1/17/modify", {"identity_changes": []}, x_mp_key="demo-sdk")
    assert answer.status == 404 and answer.json["ErrorCode"] == "NOT_FOUND_ERROR"


# Verification


def token(user_id: str, email: str = "") -> str:
    code = hmac.new(b"test_secret_key_0123456789", (user_id + email).encode(), hashlib.sha256).digest()
    return base64.b64encode(code).decode()


def test_a_login_that_the_backend_vouches_for(client: Client) -> None:
    device, user = fresh("device"), fresh("user")

    def login(**fields: str) -> Answer:
        return client.post("/v1/verification/login", {"deviceId": device, "userId": user} | fields, "support-sdk")

    session = good(login(userAuthToken=token(user)))
    assert session["state"] == "verified" and session["mayFileIssues"] and session["mpid"]
    for wrong in [{}, {"userAuthToken": "wrong"}]:
        refused = login(**wrong)
        assert 400 <= refused.status < 500
        assert refused.json["code"] in ("AuthTokenNotProvided", "InvalidAuthToken")
    out = good(client.post("/v1/verification/logout", {"deviceId": device}, "support-sdk"))
    assert out["state"] == "anonymous"
    check = {"userId": user, "userAuthToken": token(user)}
    assert good(client.post("/v1/verification/check", check, "support-backend"))["state"] == "verified"
    known = good(login(userAuthToken=token(user)))
    asked = good(client.get(f"/v1/verification/sessions/{device}", "support-backend"))
    assert asked["mpid"] == known["mpid"] and asked["deviceId"] == device and asked["keyId"] == "k1"
    assert client.get(f"/v1/verification/sessions/{device}", "support-sdk").status == 403
    nobody = good(client.get(f"/v1/verification/sessions/{fresh('device')}", "support-backend"))
    assert nobody["state"] == "anonymous" and nobody["mayFileIssues"] and not nobody["hasLogin"]


def test_where_verification_is_enforced_only_a_backend_names_people(client: Client) -> None:
    """S47."""
    person, stamp = fresh("person"), fresh("stamp")

    def call(path: str, key: str, identities: dict[str, str]) -> Answer:
        body = {"environment": "development", "known_identities": {"device_application_stamp": stamp} | identities}
        return client.send("POST", path, body, basic(key))

    victim = good(call("/v1/login", "support-backend", {"customerid": person}))["mpid"]
    for operation in ("identify", "login", "search"):
        refused = call(f"/v1/{operation}", "support-sdk", {"customerid": person})
        assert refused.status == 403 and not refused.body, "the vendor's form has no body"
    assert good(call("/v1/search", "support-backend", {"customerid": person}))["mpid"] == victim
    change = {"identity_type": "email", "old_value": None, "new_value": "mine@x.io"}
    modify = {"environment": "development", "identity_changes": [change]}
    assert client.send("POST", f"/v1/{victim}/modify", modify, basic("support-sdk")).status == 403
    assert good(client.send("POST", f"/v1/{victim}/modify", modify, basic("support-backend")))["mpid"] == victim
    # What the device says of itself is free, also where it was a person's.
    other = {"device_application_stamp": fresh("stamp")}
    assert not good(call("/v1/identify", "support-sdk", other))["is_logged_in"]
    assert good(call("/v1/logout", "support-sdk", other))["mpid"] != victim
