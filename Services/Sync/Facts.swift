// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Runtime
public import Storage
import WireJSON

/// What is known of a profile, a device, an identity value or a user of the link service. S135.
extension SyncService {
    public static func question(_ command: SyncCommand) -> FactsQuery? {
        if case .facts(let query) = command { query } else { nil }
    }

    public func facts(
        about id: String, of app: AppSettings, in transaction: any SQLTransaction
    ) throws -> FactsSubject {
        let store = SyncStore(transaction: transaction)
        var subject = FactsSubject()
        // In every spelling that is compared.
        let keys = Set(
            IdentityType.allCases.map { Scoped(app: app.id, Identity($0, IdentityValue(id)), app.sync) })
        subject.spellings = Set(keys.map(\.id.value.text))
        for entry in try store.identities(keys).sorted(by: { $0.key < $1.key }) {
            subject.add(
                "identity",
                [
                    "type": .string(entry.key.id.type.rawValue), "value": .string(entry.key.id.value.text),
                    "mpids": .array(entry.holders.prefix(FactsSubject.most).map { .string($0.description) }),
                    "holders": .number(JSONNumber(Int64(entry.holders.count))),
                ], entry.lastDecision)
        }
        let user = LinkedUser(app: app.id, id: UserID(id))
        var profiles = try store.profiles(of: [user])
        var devices: [DeviceRecord] = []
        if let mpid = MPID(spelled: id) {
            let key = Profile.Key(app: app.id, id: mpid)
            profiles += try store.profiles([key])
            devices = try store.devices(withCurrent: [key]) + store.devices(withAnonymous: [key])
        }
        // The profile first: it leads to what was decided, and may have more devices than there is room for.
        let certificates = try store.certificates(Set(profiles.filter(\.isErased).map(\.key)))
        for profile in profiles {
            add(profile, certificates.first { $0.key == profile.key }?.certificate, to: &subject)
        }
        for device in Dictionary(devices.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first }).values
            .sorted(by: { $0.key < $1.key })
        {
            add(device, to: &subject)
        }
        for device in try store.devices([DeviceRecord.Key(app: app.id, id: DeviceID(id))]) {
            add(device, to: &subject)
            if device.lastDecision.link != .none { subject.heads.append(device.lastDecision.link) }
        }
        return subject
    }

    private func add(_ profile: Profile, _ certificate: ErasureCertificate?, to subject: inout FactsSubject) {
        subject.add(
            "profile",
            [
                "mpid": .string(profile.mpid.description),
                "identities": .array(
                    profile.identities.prefix(FactsSubject.most).map {
                        ["type": .string($0.type.rawValue), "value": .string($0.value.text)]
                    }),
                "apartFrom": profile.barriers.isEmpty
                    ? nil
                    : .array(
                        Set(profile.barriers.map { $0.mpid == profile.mpid ? $0.other : $0.mpid }).sorted()
                            .prefix(FactsSubject.most).map { .string($0.description) }),
                "userId": profile.mark.map { .string($0.userID.text) },
                "firstSeen": .string(Timestamp(milliseconds: profile.firstSeen).rfc3339),
                "lastSeen": .string(Timestamp(milliseconds: profile.lastSeen).rfc3339),
                "isRestricted": profile.isRestricted ? true : nil, "isOrphaned": profile.isOrphaned ? true : nil,
                "isErased": profile.isErased ? true : nil,
                "erasedAt": certificate.map { .string($0.erasedAt.rfc3339) },
                "isUnderWay": certificate.map { $0.completedAt == nil } == true ? true : nil,
            ], profile.lastDecision)
    }

    /// What is decided about a device is told of it alone: before, it had other users.
    private func add(_ device: DeviceRecord, to subject: inout FactsSubject) {
        subject.add(
            "device",
            [
                "deviceId": .string(device.key.id.text), "mpid": device.current.map { .string($0.description) },
                "users": .array(device.users.prefix(FactsSubject.most).map { .string($0.mpid.description) }),
            ])
    }
}
