// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from what this module declares as Stored.

public import Storage

extension Barrier {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        identity.store(in: &bytes)
        mpid.store(in: &bytes)
        other.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(3, of: 3)
        identity = try bytes.next()
        mpid = try bytes.next()
        other = try bytes.next()
    }
}

extension SubjectRequestRow {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 21)
        app.store(in: &bytes)
        id.store(in: &bytes)
        kind.store(in: &bytes)
        status.store(in: &bytes)
        reason.store(in: &bytes)
        digest.store(in: &bytes)
        groupId.store(in: &bytes)
        receivedAt.store(in: &bytes)
        moment.store(in: &bytes)
        startsAt.store(in: &bytes)
        completedAt.store(in: &bytes)
        mpid.store(in: &bytes)
        identities.store(in: &bytes)
        isEveryHolder.store(in: &bytes)
        first.store(in: &bytes)
        anonymous.store(in: &bytes)
        mpids.store(in: &bytes)
        customerID.store(in: &bytes)
        profileCount.store(in: &bytes)
        heldByOthers.store(in: &bytes)
        askAt.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(10, of: 21)
        app = try bytes.next()
        id = try bytes.next()
        kind = try bytes.next()
        status = try bytes.next()
        reason = try bytes.next()
        digest = try bytes.next()
        groupId = try bytes.next()
        receivedAt = try bytes.next()
        moment = try bytes.next()
        startsAt = try bytes.next()
        completedAt = 10 < count ? try bytes.next() : nil
        mpid = 11 < count ? try bytes.next() : nil
        identities = 12 < count ? try bytes.next() : []
        isEveryHolder = 13 < count ? try bytes.next() : false
        first = 14 < count ? try bytes.next() : []
        anonymous = 15 < count ? try bytes.next() : []
        mpids = 16 < count ? try bytes.next() : []
        customerID = 17 < count ? try bytes.next() : nil
        profileCount = 18 < count ? try bytes.next() : 0
        heldByOthers = 19 < count ? try bytes.next() : 0
        askAt = 20 < count ? try bytes.next() : nil
    }
}
