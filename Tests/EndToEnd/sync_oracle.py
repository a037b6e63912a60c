# SPDX-License-Identifier: Apache-2.0
"""A naive model of the sync service, written from docs/sync.md: profile conversion, one command after the other. It
shares no line with the product; who is made by a command is called as the reply calls them."""

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from identitybus_testkit.bus import Record
from identitybus_testkit.commands import Command

PRIORITY = ["customerid", "email", "ios_idfv", "roku_aid", "device_application_stamp"]
PROFILES_PER_VALUE = 50
UNIQUE = LOGIN = {"customerid", "email"}

Identity = tuple[str, str]


@dataclass
class Told:
    """What the events of a command add up to: how they are cut into events is for the service to say."""

    created: dict[str, tuple[list[Identity], bool]] = field(default_factory=dict)
    # How often each identity came, less how often it went.
    changed: dict[str, Counter[Identity]] = field(default_factory=lambda: defaultdict(Counter))
    orphaned: set[str] = field(default_factory=set)
    # The one before, the one now, whether known, whether ephemeral.
    current: dict[str, tuple[str | None, str, bool, bool]] = field(default_factory=dict)
    # Values that too many share: the type, the digest, how many have it, how many may.
    common: set[tuple[str, str, int, int]] = field(default_factory=set)

    @classmethod
    def of(cls, records: list[Record], cause: str, rule: str | None) -> "Told":
        told = cls()
        events = {record.envelope["id"]: record.envelope for record in records}
        for event in events.values():
            data, kind = event["data"], event["type"].removeprefix("identity.sync.").removesuffix(".v1")
            assert kind == "value-too-common" or data["cause"] == cause, data
            match kind:
                case "profile-created":
                    assert data["mpid"] not in told.created and data["rule"] == rule, data
                    told.created[data["mpid"]] = (identities(data["identities"]), data["isLoggedIn"])
                case "identities-changed":
                    assert data["added"] or data["removed"], data
                    told.changed[data["mpid"]].update(identities(data["added"]))
                    told.changed[data["mpid"]].subtract(identities(data["removed"]))
                case "profile-orphaned":
                    assert data["mpid"] not in told.orphaned, data
                    told.orphaned.add(data["mpid"])
                case "current-user-changed":
                    assert data["deviceId"] not in told.current and rule in (None, data["rule"]), data
                    told.current[data["deviceId"]] = (
                        data.get("previousMPID"), data["mpid"], data["isLoggedIn"], data["isEphemeral"])
                case "value-too-common":
                    one = (data["type"], data["digest"], data["holders"], data["limit"])
                    assert one not in told.common, data
                    told.common.add(one)
                case _:
                    raise AssertionError(f"{kind} is not expected here")
        return told


def identities(told: list[dict[str, str]]) -> list[Identity]:
    return [(one["type"], one["value"]) for one in told]


@dataclass
class Profile:
    identities: list[Identity] = field(default_factory=list)
    seen: int = 0
    is_orphaned: bool = False

    @property
    def is_known(self) -> bool:
        return any(kind in LOGIN for kind, _ in self.identities)


class Oracle:
    """Profile conversion, one command after the other."""

    def __init__(self) -> None:
        self.profiles: dict[str, Profile] = {}
        self.current: dict[str, str] = {}
        # S62: those of whom it was said.
        self.common: set[Identity] = set()

    def decide(self, command: Command, result: dict[str, Any], now: int) -> Told:
        """:returns: what its events must tell."""
        profiles = {mpid: replace(one, identities=list(one.identities)) for mpid, one in self.profiles.items()}
        current, common = dict(self.current), set(self.common)
        if command.type == "sync.modify":
            self.modify(command.data, result)
        else:
            self.move(command.type.removeprefix("sync."), command.data, result, now)
        told = Told(common={
            (kind, hashlib.sha256(value.encode()).hexdigest(), PROFILES_PER_VALUE // 2, PROFILES_PER_VALUE)
            for kind, value in self.common - common})
        for mpid, profile in self.profiles.items():
            if (old := profiles.get(mpid)) is None:
                told.created[mpid] = (profile.identities, profile.is_known)
                continue
            if profile.identities != old.identities:
                told.changed[mpid] = Counter(profile.identities)
                told.changed[mpid].subtract(old.identities)
            if profile.is_orphaned and not old.is_orphaned:
                told.orphaned.add(mpid)
        # S38: each device whose current user is another one, or is known or anonymous now.
        for device, mpid in self.current.items():
            profile, old = self.profiles[mpid], profiles.get(mpid)
            if current.get(device) != mpid or (old and old.is_known != profile.is_known):
                told.current[device] = (current.get(device), mpid, profile.is_known, not profile.identities)
        return told

    def holders(self, identity: Identity) -> list[str]:
        return [mpid for mpid, profile in self.profiles.items() if identity in profile.identities]

    def find(self, wanted: dict[str, str], current: str | None) -> str | None:
        left: list[str] = []
        for kind in PRIORITY:
            if kind not in wanted:
                continue
            found = [
                mpid for mpid in self.holders((kind, wanted[kind]))
                if not self.profiles[mpid].is_known or self.is_meant(self.profiles[mpid], wanted)]
            left = [mpid for mpid in left if mpid in found] or left or found
            if len(left) == 1:
                break
        if current in left:
            return current
        return min(left, key=lambda mpid: (-self.profiles[mpid].seen, int(mpid)), default=None)

    def is_meant(self, profile: Profile, wanted: dict[str, str]) -> bool:
        """By the best ranked login identity that both have, and that they have in common."""
        own = dict(one for one in profile.identities if one[0] in LOGIN)
        both = [kind for kind in PRIORITY if kind in own and kind in wanted]
        return bool(both) and own[both[0]] == wanted[both[0]]

    def move(self, operation: str, data: dict[str, Any], result: dict[str, Any], now: int) -> None:
        wanted = dict(data["knownIdentities"])
        device, current = data["deviceId"], self.current.get(data["deviceId"])
        if operation == "logout":
            wanted = {kind: value for kind, value in wanted.items() if kind not in LOGIN}
            found = None
        else:
            found = self.find(wanted, current)
        mpid = found or result["mpid"]
        assert result["mpid"] == mpid, f"expected {mpid} ({self.profiles.get(mpid)})"
        assert (found is None) == (mpid not in self.profiles), "an MPID was used again"
        assert result.get("previousMPID") == current
        profile = self.profiles.setdefault(mpid, Profile())
        assert not profile.is_orphaned, "an orphan came back"
        for kind in sorted(wanted, key=lambda kind: (PRIORITY + [kind]).index(kind)):
            identity = (kind, wanted[kind])
            if identity in profile.identities or (kind in UNIQUE and self.holders(identity)):
                continue
            if kind in UNIQUE:
                profile.identities = [own for own in profile.identities if own[0] != kind]
            elif not self.make_room(identity):
                continue
            profile.identities.append(identity)
            if kind not in UNIQUE and len(self.holders(identity)) >= PROFILES_PER_VALUE // 2:
                self.common.add(identity)
        profile.seen = now
        self.current[device] = mpid
        assert result["isLoggedIn"] == profile.is_known

    def make_room(self, identity: Identity) -> bool:
        """Anonymous ones give a value up that too many share, those seen longest ago first; others keep it."""
        holders = self.holders(identity)
        anonymous = sorted(
            (mpid for mpid in holders if not self.profiles[mpid].is_known),
            key=lambda mpid: (self.profiles[mpid].seen, int(mpid)))
        excess = max(0, len(holders) - PROFILES_PER_VALUE + 1)
        if excess > len(anonymous):
            return False
        for mpid in anonymous[:excess]:
            self.profiles[mpid].identities.remove(identity)
            self.profiles[mpid].is_orphaned = not self.profiles[mpid].identities
        return True

    def modify(self, data: dict[str, Any], result: dict[str, Any]) -> None:
        mpid, touched = data["mpid"], []
        profile = self.profiles[mpid]
        assert not profile.is_orphaned
        before = bool(profile.identities)
        for change in data["changes"]:
            kind, new = change["identityType"], change["newValue"]
            own = [one for one in profile.identities if one[0] == kind]
            if own == ([(kind, new)] if new else []):
                continue
            touched.append(mpid)
            profile.identities = [one for one in profile.identities if one[0] != kind]
            if new:
                for other in self.holders((kind, new)):
                    loser = self.profiles[other]
                    loser.identities.remove((kind, new))
                    loser.is_orphaned = not loser.identities
                    touched.append(other)
                profile.identities.append((kind, new))
        profile.is_orphaned = before and not profile.identities
        assert [one["modifiedMPID"] for one in result["changeResults"]] == touched
        assert result["isLoggedIn"] == profile.is_known
