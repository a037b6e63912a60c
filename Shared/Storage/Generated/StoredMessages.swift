// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

public import Contracts

extension Device: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        kind.store(in: &bytes)
        platform.store(in: &bytes)
        model.store(in: &bytes)
        osVersion.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(2, of: 4)
        self.init(
            kind: try bytes.next(),
            platform: try bytes.next(),
            model: 2 < count ? try bytes.next() : nil,
            osVersion: 3 < count ? try bytes.next() : nil)
    }
}

extension Device.Kind: Stored {}

extension ErasureCertificate: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 7)
        requestId.store(in: &bytes)
        erasedAt.store(in: &bytes)
        completedAt.store(in: &bytes)
        subject.store(in: &bytes)
        done.store(in: &bytes)
        heldByOthers.store(in: &bytes)
        remains.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(5, of: 7)
        self.init(
            requestId: try bytes.next(),
            erasedAt: try bytes.next(),
            completedAt: try bytes.next(),
            subject: try bytes.next(),
            done: try bytes.next(),
            heldByOthers: 5 < count ? try bytes.next() : 0,
            remains: 6 < count ? try bytes.next() : [])
    }
}

extension ErasureCertificate.Counts: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        link.store(in: &bytes)
        user.store(in: &bytes)
        sync.store(in: &bytes)
        verification.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 4)
        self.init(
            link: 0 < count ? try bytes.next() : nil,
            user: 1 < count ? try bytes.next() : nil,
            sync: 2 < count ? try bytes.next() : nil,
            verification: 3 < count ? try bytes.next() : nil)
    }
}

extension ErasureCertificate.Counts.Link: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        persons.store(in: &bytes)
        installs.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 2)
        self.init(
            persons: 0 < count ? try bytes.next() : 0,
            installs: 1 < count ? try bytes.next() : 0)
    }
}

extension ErasureCertificate.Counts.Sync: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        profiles.store(in: &bytes)
        identities.store(in: &bytes)
        devices.store(in: &bytes)
        aliases.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 4)
        self.init(
            profiles: 0 < count ? try bytes.next() : 0,
            identities: 1 < count ? try bytes.next() : 0,
            devices: 2 < count ? try bytes.next() : 0,
            aliases: 3 < count ? try bytes.next() : 0)
    }
}

extension ErasureCertificate.Counts.User: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        installs.store(in: &bytes)
        codes.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 2)
        self.init(
            installs: 0 < count ? try bytes.next() : 0,
            codes: 1 < count ? try bytes.next() : 0)
    }
}

extension ErasureCertificate.Counts.Verification: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 1)
        sessions.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 1)
        self.init(
            sessions: 0 < count ? try bytes.next() : 0)
    }
}

extension ErasureCertificate.Remainder: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        place.store(in: &bytes)
        until.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(1, of: 2)
        self.init(
            place: try bytes.next(),
            until: 1 < count ? try bytes.next() : nil)
    }
}

extension ErasureCertificate.Remainder.Place: Stored {}

extension ErasureCertificate.Subject: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        userIds.store(in: &bytes)
        mpids.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 2)
        self.init(
            userIds: 0 < count ? try bytes.next() : [],
            mpids: 1 < count ? try bytes.next() : [])
    }
}

extension ForgetPerson: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        userId.store(in: &bytes)
        externalId.store(in: &bytes)
        erasedAt.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(0, of: 3)
        self.init(
            userId: 0 < count ? try bytes.next() : nil,
            externalId: 1 < count ? try bytes.next() : nil,
            erasedAt: 2 < count ? try bytes.next() : nil)
    }
}

extension FormerExternalID: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        externalId.store(in: &bytes)
        until.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(2, of: 2)
        self.init(
            externalId: try bytes.next(),
            until: try bytes.next())
    }
}

extension Identity: Stored {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        type.store(in: &bytes)
        value.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(2, of: 2)
        self.init(
            type: try bytes.next(),
            value: try bytes.next())
    }
}

extension IdentityType: Stored {}

extension InstallStatus: Stored {}

extension ReasonCode: Stored {}

extension SubjectRequest.Kind: Stored {}

extension SubjectRequest.Status: Stored {}
