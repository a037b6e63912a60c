// SPDX-License-Identifier: Apache-2.0

public import WireJSON

extension ImportUsers {
    public var elements: [ListElement<ImportedUser>] { users }
}

extension ImportedUser: ImportedElement {
    public var subject: String? { isUserID ? userId.text : nil }

    /// A user on more installs is not repaired either (L69).
    public static let mostInstalls = 1000

    public var problem: String? {
        guard isUserID else { return "userId is not 24 lower-case hex characters" }
        do throws(Rejection) {
            if let externalId { try Validation.identityValue(externalId, "externalId") }
            for install in installs ?? [] {
                try Validation.id(install.installId, "installId")
                try install.device.validate("device")
            }
        } catch {
            return error.message
        }
        if Set(brought.map(\.installId)).count != brought.count { return "an install is named twice" }
        guard externalId == nil else { return nil }
        if brought.count > 1 { return "a user without an external id is on one install at most" }
        return brought.first?.isActive == false ? "a user without an external id is active where it is" : nil
    }

    public func add(to digest: inout ElementDigest) {
        digest.add(userId.text)
        digest.add(externalId?.text)
        digest.add(createdAt)
        digest.add(installs) { digest, install in
            digest.add(install.installId.text)
            digest.add(install.device)
            digest.add(install.isActive)
            digest.add(install.status?.rawValue)
        }
    }

    /// Its installs.
    public var brought: [Install] { installs ?? [] }

    private var isUserID: Bool {
        let bytes = userId.text.utf8
        return bytes.count == 24
            && bytes.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
}

extension ImportProfiles {
    public var elements: [ListElement<ImportedProfile>] { profiles }
}

extension ImportedProfile: ImportedElement {
    public init(
        mpid: MPID, identities: [IdentityType: [String]], firstSeen: Timestamp, lastSeen: Timestamp,
        name: String? = nil, devices: [Device]? = nil
    ) {
        let values = identities.map { ($0.key.rawValue, IdentityValues($0.value)) }
        self.init(
            mpid: mpid, identities: [String: IdentityValues](uniqueKeysWithValues: values), firstSeen: firstSeen,
            lastSeen: lastSeen, name: name, devices: devices)
    }

    public var subject: String? { mpid.description }

    /// More are refused: so many no profile has by what people do.
    public static let mostIdentities = 500
    public static let mostDevices = 1000

    public var problem: String? {
        do throws(Rejection) {
            for (type, values) in identities {
                try Validation.identityType(type, "identities")
                for value in values.values { try Validation.identityValue(value, type) }
            }
            for device in brought { try Validation.id(device.deviceId, "deviceId") }
        } catch {
            return error.message
        }
        if let name, !(1...255).contains(name.unicodeScalars.count) { return "name has not 1 to 255 characters" }
        if named.count > Self.mostIdentities { return "more than \(Self.mostIdentities) identities" }
        if brought.count > Self.mostDevices { return "more than \(Self.mostDevices) devices" }
        return Set(brought.map(\.deviceId)).count == brought.count ? nil : "a device is named twice"
    }

    public func add(to digest: inout ElementDigest) {
        digest.add(mpid.description)
        digest.add(identities.sorted { $0.key < $1.key }) { digest, one in
            digest.add(one.key)
            digest.add(one.value.values) { $0.add($1) }
        }
        digest.add(firstSeen)
        digest.add(lastSeen)
        digest.add(name)
        digest.add(devices) { digest, device in
            digest.add(device.deviceId.text)
            digest.add(device.isCurrent)
            digest.add(device.firstSeen)
            digest.add(device.lastSeen)
        }
    }

    /// Its identities, by type and then as they were written.
    public var named: [Identity] {
        identities.compactMap { name, values in IdentityType(rawValue: name).map { ($0, values) } }
            .sorted { $0.0 < $1.0 }.flatMap { type, values in values.values.map { Identity(type, IdentityValue($0)) } }
    }

    /// Its devices.
    public var brought: [Device] { devices ?? [] }
}

/// The values of one type: a list, or the one that there is.
public struct IdentityValues: Codable, WireReadable, WireWritable, Sendable, Hashable {
    public var values: [String]

    public init(_ values: [String]) { self.values = values }

    public init(from decoder: any Decoder) throws {
        if let value = try? decoder.singleValueContainer().decode(String.self) {
            values = [value]
        } else {
            values = try [String](from: decoder)
        }
    }

    public func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }

    public func write(to json: inout JSONOutput) throws { try values.write(to: &json) }
}
