# SPDX-License-Identifier: Apache-2.0
"""A story that has every message in it that can be had in a minute, told by commands as docs/asyncapi.yaml has them."""

from typing import Any

from . import apps
from .commands import PHONE, Command, fresh
from .contract import CONTRACT, subject_of
from .deployment import Deployment
from .verification import identity_token, keys, secret, token
from .waiting import until

APP = "recorded"
# The sync service does not hear of links there, so an import may be silent; and nobody logs in without a token.
PLAIN = "plain"


def recorded_app(app: str) -> dict[str, Any]:
    """An app with everything in use, and a key that may do all that a key may."""
    scopes = [scope for scope in CONTRACT.document["x-scopes"] if scope != "internal"]
    return {
        "id": app, "keys": [apps.key(f"{app}-all", *scopes)],
        "sdk": {"appSecret": apps.APP_SECRET, "configuration": apps.CONFIGURATION, "keysOpenInstalls": True},
        "sync": {**apps.worked("conversion"), "fromLinks": app == APP},
        "verification": {
            "mode": "report" if app == APP else "enforce", "signedFields": "userId", "keys": keys("k1", app=app),
            "identityTokenSecret": secret("jwt", app)},
    }


def command(kind: str, data: Any, app: str = APP, **attributes: Any) -> Command:
    scope = CONTRACT.commands[kind]["x-scope"]
    subject = subject_of(kind, data) if isinstance(data, dict) else None
    return Command(
        kind, data, subject or "nobody", app=app, signer="internal" if scope == "internal" else f"{app}-all",
        attributes=attributes)


class Story:
    """People who do what people do, and those who help them."""

    def __init__(self, platform: Deployment) -> None:
        self.platform = platform
        self.bus = platform.bus

    def ask(self, kind: str, end: str = "succeeded", /, **data: Any) -> dict[str, Any]:
        reply = self.bus.settle(command(kind, data), timeout=60)
        assert reply["status"] == end, (kind, reply.get("reason"), reply.get("message"), data)
        return dict(reply.get("result") or {"reason": reply.get("reason")})

    def tell(self, kind: str, /, **data: Any) -> None:
        """What nobody is answered, or nobody waits for."""
        self.bus.send(command(kind, data))

    def hear(self, kind: str, **data: Any) -> None:
        """Waits for an event that says this."""
        self.bus.collector.wait(
            lambda: any(record.envelope["type"] == f"identity.{kind}.v1" and data.items() <= record.data.items()
                        for records in self.bus.collector.events.values() for record in records), 60, lambda: kind)

    def code(self, external_id: str) -> str:
        return str(self.ask("user.request-auth-code", externalId=external_id)["authenticationCode"])

    def users(self) -> None:
        """The user service and the SDK."""
        ada, phone, tablet = fresh("ada"), fresh("phone"), fresh("tablet")
        self.ask("user.create", installId=phone, device=PHONE, sdkVersion="1", appVersion="2", authCode=self.code(ada))
        self.ask("user.create", installId=tablet, device=PHONE, authCode=self.code(ada))  # the phone is superseded
        self.ask("user.get", installId=phone)
        self.ask("user.create", "rejected", installId=fresh("i"), device=PHONE, authCode="none")
        self.ask("user.reset", installId=tablet)
        for success, status in ((True, "succeeded"), (False, "rejected")):
            install, name = fresh("i"), fresh("ext")
            created = command("user.create", {
                "installId": install, "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "linker"})
            self.bus.send(created)
            until(lambda: any((record.data.get("result") or {}).get("awaiting") == "linker"
                              for record in self.bus.collector.replies[created.id]), 30, "the linker's turn")
            if success:
                self.ask("link.request", installId=install, externalId=name)
            self.ask("user.confirm-link", status, installId=install, success=success)
            assert self.bus.final(created.id)["status"] == status
        alone = fresh("i")
        self.ask("user.create", installId=alone, device=PHONE, appSecret=apps.APP_SECRET, linking="none")
        self.ask("user.link", installId=alone, authCode=self.code(fresh("ext")))
        user = self.ask("user.get", installId=alone)["userId"]
        for status in ("disabled", "enabled"):
            self.ask("link.set-install-status", installId=alone, status=status)
        self.ask("link.unlink-user", userId=user, author="kim", reason="somebody else")
        self.tell("user.expire-linker", installId=alone, commandSource="s", commandId="c")
        self.tell("user.expire-user", installId=alone, userId=user)
        self.ask("user.facts", id=alone)

    def links(self) -> None:
        bert, one, two = fresh("bert"), fresh("one"), fresh("two")
        self.ask("link.register-install", installId=one, device=PHONE, user="none")
        self.ask("link.request", installId=one, externalId=bert)
        self.ask("link.establish", installId=two, device=PHONE, externalId=bert, mode="create")
        user = self.ask("link.query", installId=two)["userId"]
        self.ask("link.request", "rejected", installId=one, externalId=bert)
        self.ask("link.make-active", installId=one, author="kim", reason="lost")
        for status in ("disabled", "enabled", "deleted"):
            self.ask("link.set-install-status", installId=two, status=status)
        self.ask("link.get-user", userId=user)
        self.ask("link.change-external-id", userId=user, newExternalId=fresh("berta"), author="kim", reason="typo")
        self.ask("link.unlink-user", userId=user, author="kim", reason="somebody else")
        self.ask("link.detach-install", installId=one, cause="reset")
        self.ask("link.get-erasure", "rejected", userId=user)
        new, person = fresh("new"), "5a18fc4b0962209e000000aa"
        anonymous = self.ask("link.register-install", installId=new, device=PHONE, user="new")["userId"]
        self.ask("link.expire-user", installId=new, userId=anonymous)
        self.ask("link.import-users", users=[
            {"userId": person, "externalId": fresh("i"), "createdAt": "2023-11-14T22:13:20Z",
             "installs": [{"installId": fresh("i"), "device": PHONE, "isActive": True, "status": "enabled"}]},
            {"userId": "x"}, 7, {"userId": person, "noSuchMember": 1}])
        self.ask("link.import-users", users=[{"userId": "5a18fc4b0962209e000000ab"}], upsert=True)
        self.ask("link.erase-user", userId=person, author="kim", reason="asked")
        self.ask("link.get-erasure", userId=person)
        self.ask("link.facts", id=person)

    def profiles(self) -> None:
        device, mail, name = fresh("d"), f"{fresh('m')}@example.org", fresh("carl")
        stamp = {"device_application_stamp": device}
        anonymous = self.ask("sync.identify", deviceId=device, knownIdentities=stamp)["mpid"]
        known = self.ask("sync.login", deviceId=device, name="Carl", context="c", requestId="r", previousMPID=anonymous,
                         requestTimestampMs=1, knownIdentities={"customerid": name, "email": mail, "ios_idfv": None})["mpid"]
        self.ask("sync.search", deviceId=device, knownIdentities={"email": mail}, previousMPID=0)
        self.ask("sync.modify", mpid=known, changes=[
            {"identityType": "other", "newValue": "x"}, {"identityType": "email", "oldValue": mail, "newValue": None}])
        self.ask("sync.modify", mpid=int(known), changes=[{"identityType": "email", "newValue": mail}], deviceId=device)
        self.ask("sync.logout", deviceId=device, knownIdentities=stamp)
        other = self.ask("sync.identify", deviceId=fresh("d"), knownIdentities={"ios_idfv": fresh("v")})["mpid"]
        self.ask("sync.alias", sourceMPID=other, destinationMPID=known, scope="mpid")
        self.hear("sync.aliased", sourceMPID=other)
        assert not self.ask("sync.alias", sourceMPID=other, destinationMPID=known)["isScheduled"]
        taken = f"{fresh('m')}@example.org"
        self.ask("sync.login", deviceId=fresh("d"), knownIdentities={"email": taken})
        self.ask("sync.modify", mpid=known, changes=[{"identityType": "email", "oldValue": mail, "newValue": taken}])
        self.ask("sync.modify", mpid=known, changes=[{"identityType": "email", "oldValue": taken, "newValue": mail}])
        self.ask("sync.get-users", deviceId=device)
        self.ask("sync.get-profile", identity={"type": "email", "value": mail})
        self.ask("sync.get-profile", "rejected", identity={"type": "email", "value": f"{fresh('m')}@example.org"})
        moved = self.ask("sync.detach", mpid=known, identities=[{"type": "email", "value": mail}], author="k", reason="two")
        self.ask("sync.login", deviceId=device, knownIdentities={"customerid": name, "email": mail})  # the e-mail is barred
        self.ask("sync.allow", mpid=known, otherMPID=moved["newMPID"], author="kim", reason="one")
        install = fresh("i")
        self.ask("link.register-install", installId=install, device=PHONE, user="none")
        self.ask("link.request", installId=install, externalId=name)
        self.hear("sync.linked-user-changed", mpid=known)
        for on in (True, False):
            self.ask("sync.restrict", mpid=known, isRestricted=on, author="kim", reason="Art. 18")
        self.ask("sync.import-profiles", profiles=[
            {"mpid": "4711", "identities": {"email": f"{fresh('m')}@example.org", "other": ["a", "b"]},
             "firstSeen": "2023-11-14T22:13:20Z", "lastSeen": "2023-11-14T22:13:20.5+01:00", "name": "Dora",
             "devices": [{"deviceId": fresh("d"), "isCurrent": True, "firstSeen": "2023-11-14T22:13:20Z",
                          "lastSeen": "2023-11-14T22:13:20Z"}]}, {"mpid": 0}])
        self.ask("sync.import-profiles", profiles=[
            {"mpid": 4712, "identities": {"other": "one"}, "firstSeen": "2023-11-14T22:13:20Z",
             "lastSeen": "2023-11-14T22:13:20Z"}])
        for number, kind in enumerate(("access", "erasure")):
            request = f"a7551968-d5d6-44b2-9831-815ac901779{number}"
            self.ask("sync.file-request", requestId=request, kind=kind, mpid=known, groupId="g", regulation="gdpr")
            self.ask("sync.get-request", requestId=request)
            self.ask("sync.get-request-results", "rejected", requestId=request)
            self.tell("sync.process-request", requestId=request, startsAt="2030-01-31T12:00:00Z")
            self.ask("sync.cancel-request", requestId=request)
        self.ask("sync.get-requests", groupId="g")
        self.ask("sync.erase-profile", "rejected", identities={"email": f"{fresh('m')}@example.org"})
        self.ask("sync.erase-profile", mpid=known)
        self.ask("sync.get-erasure", mpid=known)
        self.ask("sync.facts", id=known)
        self.tell("sync.expire-profile", mpid=anonymous, lastSeen="2023-11-14T22:13:20Z")
        self.tell("sync.expire-device", deviceId=device, lastSeen="2023-11-14T22:13:20Z")

    def sessions(self) -> None:
        device, user = fresh("d"), fresh("eve")
        self.ask("verification.login", deviceId=device, userId=user, userName="Eve", userAuthToken=token(user, app=APP))
        self.ask("verification.login", deviceId=fresh("d"), userId=user, userAuthToken=token("x", app=APP), fullPrivacy=False)
        self.ask("verification.login", deviceId=fresh("d"))
        self.ask("verification.login-identity", deviceId=fresh("d"), identityToken=identity_token(
            [{"identifier": "uid", "value": user}], app=APP))
        self.ask("verification.check", userId=user, userAuthToken=token(user, app=APP))
        self.ask("verification.check", "rejected", userId=user, userAuthToken="x")
        refused = self.bus.settle(command("verification.login", {"deviceId": device, "userId": user}, PLAIN), timeout=60)
        assert refused["reason"] == "AuthTokenNotProvided" and refused["result"]["state"] == "unverified"
        mpid = self.ask("verification.get-session", deviceId=device)["mpid"]
        self.ask("verification.usage")
        self.ask("verification.facts", id=device)
        self.ask("verification.logout", deviceId=device)
        self.ask("verification.forget", mpids=[mpid])
        self.tell("verification.review-session", deviceId=device)
        self.tell("verification.expire-session", deviceId=device, lastSeen="2030-11-14T22:13:20Z")

    def crowd(self) -> None:
        """Many of whom nothing more is to be told."""
        installs, devices = [fresh("i") for _ in range(40)], [fresh("d") for _ in range(40)]
        self.bus.send_all(
            [command("link.register-install", {"installId": install, "device": PHONE, "user": "new"}) for install in installs]
            + [command("sync.identify", {"deviceId": device, "knownIdentities": {"ios_idfv": device}}) for device in devices])

    def attributes(self) -> None:
        """What the envelope may say beside."""
        install = fresh("i")
        dry = command("user.create", {
            "installId": install, "device": PHONE, "authCode": self.code(fresh("ext"))}, dryrun="true", replykey="k",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate="a=b")
        reply = self.bus.ask(dry, timeout=60)
        assert reply["dryRun"] and "tokenId" not in reply["result"]["token"]
        dry = command("user.request-auth-code", {"externalId": fresh("ext")}, dryrun=True)
        assert "authenticationCode" not in self.bus.ask(dry)["result"]
        late = command("link.query", {"installId": install}, expirytime="2020-01-31T12:00:00Z", time="2020-01-31T12:00:00Z")
        assert self.bus.ask(late)["status"] == "expired"
        self.bus.dead_letter(self.bus.put(b"{}", []))
        unknown = Command("link.no-such-command", {}, "nobody", app=APP, signer="recorded-all")
        assert self.bus.ask(unknown)["reason"] == "UNKNOWN_TYPE"
