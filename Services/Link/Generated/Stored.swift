// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from what this module declares as Stored.

public import Storage

extension Erasure {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 10)
        app.store(in: &bytes)
        userID.store(in: &bytes)
        moment.store(in: &bytes)
        externalID.store(in: &bytes)
        former.store(in: &bytes)
        installIDs.store(in: &bytes)
        certificate.store(in: &bytes)
        user.store(in: &bytes)
        sync.store(in: &bytes)
        waiting.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(7, of: 10)
        app = try bytes.next()
        userID = try bytes.next()
        moment = try bytes.next()
        externalID = try bytes.next()
        former = try bytes.next()
        installIDs = try bytes.next()
        certificate = try bytes.next()
        user = 7 < count ? try bytes.next() : Part.untold
        sync = 8 < count ? try bytes.next() : Part.untold
        waiting = 9 < count ? try bytes.next() : []
    }
}

extension Erasure.Part {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .untold:
            bytes.add(byte: 0)
        case .asked(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        case .refused:
            bytes.add(byte: 2)
        case .done:
            bytes.add(byte: 3)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .untold
        case 1: self = .asked(forward: try bytes.next())
        case 2: self = .refused
        case 3: self = .done
        default: throw StoredReader.damaged
        }
    }
}

extension Erasure.Waiting {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        source.store(in: &bytes)
        id.store(in: &bytes)
        answer.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(3, of: 3)
        source = try bytes.next()
        id = try bytes.next()
        answer = try bytes.next()
    }
}

extension Erasure.Waiting.Answer {
    func store(in bytes: inout StoredWriter) {
        switch self {
        case .erased:
            bytes.add(byte: 0)
        case .forgotten(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        }
    }

    init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .erased
        case 1: self = .forgotten(also: try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension Restriction {
    func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        mpid.store(in: &bytes)
        isRestricted.store(in: &bytes)
        changedAt.store(in: &bytes)
    }

    init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(3, of: 3)
        mpid = try bytes.next()
        isRestricted = try bytes.next()
        changedAt = try bytes.next()
    }
}
