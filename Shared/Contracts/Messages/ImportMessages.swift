// SPDX-License-Identifier: Apache-2.0

/// Brings users of another system, with their installs (docs/link.md "Import"). Result: ``ImportResult``.
public struct ImportUsers: ImportCommand {
    public static let type = "identity.link.import-users.v1"

    public var users: [ListElement<ImportedUser>]
    public var upsert: Bool?
    public var events: Bool?

    public init(users: [ListElement<ImportedUser>], upsert: Bool? = nil, events: Bool? = nil) {
        self.users = users
        self.upsert = upsert
        self.events = events
    }

    public var elements: [ListElement<ImportedUser>] { users }
}

public struct ImportedUser: ImportedElement {
    public struct Install: Codable, Sendable, Hashable {
        public var installId: InstallID
        public var device: Device
        /// Absent: whether it is the only one.
        public var isActive: Bool?
        /// Absent: enabled.
        public var status: InstallStatus?

        public init(
            installId: InstallID, device: Device, isActive: Bool? = nil, status: InstallStatus? = nil
        ) {
            self.installId = installId
            self.device = device
            self.isActive = isActive
            self.status = status
        }

        private enum CodingKeys: String, CodingKey, CaseIterable { case installId, device, isActive, status }

        public init(from decoder: any Decoder) throws {
            try decoder.refuseUnknownMembers(but: CodingKeys.self)
            let container = try decoder.container(keyedBy: CodingKeys.self)
            installId = try container.decode(InstallID.self, forKey: .installId)
            device = try container.decode(Device.self, forKey: .device)
            isActive = try container.decodeIfPresent(Bool.self, forKey: .isActive)
            status = try container.decodeIfPresent(InstallStatus.self, forKey: .status)
        }
    }

    /// As the other system named it: 24 lower-case hex characters.
    public var userId: UserID
    public var externalId: ExternalID?
    public var createdAt: Timestamp?
    public var installs: [Install]?

    public init(
        userId: UserID, externalId: ExternalID? = nil, createdAt: Timestamp? = nil, installs: [Install]? = nil
    ) {
        self.userId = userId
        self.externalId = externalId
        self.createdAt = createdAt
        self.installs = installs
    }

    private enum CodingKeys: String, CodingKey, CaseIterable { case userId, externalId, createdAt, installs }

    public init(from decoder: any Decoder) throws {
        try decoder.refuseUnknownMembers(but: CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        userId = try container.decode(UserID.self, forKey: .userId)
        externalId = try container.decodeIfPresent(ExternalID.self, forKey: .externalId)
        createdAt = try container.decodeIfPresent(Timestamp.self, forKey: .createdAt)
        installs = try container.decodeIfPresent([Install].self, forKey: .installs)
    }

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

/// Brings profiles of another system, with who uses which device (docs/sync.md "Import"). Result: ``ImportResult``.
public struct ImportProfiles: ImportCommand {
    public static let type = "identity.sync.import-profiles.v1"

    public var profiles: [ListElement<ImportedProfile>]
    public var upsert: Bool?
    public var events: Bool?

    public init(profiles: [ListElement<ImportedProfile>], upsert: Bool? = nil, events: Bool? = nil) {
        self.profiles = profiles
        self.upsert = upsert
        self.events = events
    }

    public var elements: [ListElement<ImportedProfile>] { profiles }
}

public struct ImportedProfile: ImportedElement {
    public struct Device: Codable, Sendable, Hashable {
        public var deviceId: DeviceID
        /// Whether the profile is the device's user now, and not only one of those who were.
        public var isCurrent: Bool
        public var firstSeen: Timestamp
        public var lastSeen: Timestamp

        public init(deviceId: DeviceID, isCurrent: Bool, firstSeen: Timestamp, lastSeen: Timestamp) {
            self.deviceId = deviceId
            self.isCurrent = isCurrent
            self.firstSeen = firstSeen
            self.lastSeen = lastSeen
        }

        private enum CodingKeys: String, CodingKey, CaseIterable { case deviceId, isCurrent, firstSeen, lastSeen }

        public init(from decoder: any Decoder) throws {
            try decoder.refuseUnknownMembers(but: CodingKeys.self)
            let container = try decoder.container(keyedBy: CodingKeys.self)
            deviceId = try container.decode(DeviceID.self, forKey: .deviceId)
            isCurrent = try container.decode(Bool.self, forKey: .isCurrent)
            firstSeen = try container.decode(Timestamp.self, forKey: .firstSeen)
            lastSeen = try container.decode(Timestamp.self, forKey: .lastSeen)
        }
    }

    public var mpid: MPID
    /// By type. One value may stand without a list.
    @SortedKeys public var identities: [IdentityType.RawValue: IdentityValues]
    public var firstSeen: Timestamp
    public var lastSeen: Timestamp
    public var name: String?
    public var devices: [Device]?

    public init(
        mpid: MPID, identities: [IdentityType: [String]], firstSeen: Timestamp, lastSeen: Timestamp,
        name: String? = nil, devices: [Device]? = nil
    ) {
        self.mpid = mpid
        _identities = SortedKeys(
            wrappedValue: Dictionary(
                uniqueKeysWithValues: identities.map { ($0.key.rawValue, IdentityValues($0.value)) }))
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.name = name
        self.devices = devices
    }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case mpid, identities, firstSeen, lastSeen, name, devices
    }

    public init(from decoder: any Decoder) throws {
        try decoder.refuseUnknownMembers(but: CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mpid = try container.decode(MPID.self, forKey: .mpid)
        _identities = try container.decode(SortedKeys<IdentityValues>.self, forKey: .identities)
        firstSeen = try container.decode(Timestamp.self, forKey: .firstSeen)
        lastSeen = try container.decode(Timestamp.self, forKey: .lastSeen)
        name = try container.decodeIfPresent(String.self, forKey: .name)
        devices = try container.decodeIfPresent([Device].self, forKey: .devices)
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
public struct IdentityValues: Codable, Sendable, Hashable {
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
}
