// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from what this module declares as Stored.

public import Storage

extension Account {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        registration.store(in: &bytes)
        version.store(in: &bytes)
        status.store(in: &bytes)
        user.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(4, of: 4)
        registration = try bytes.next()
        version = try bytes.next()
        status = try bytes.next()
        user = try bytes.next()
    }
}

extension Beginners {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        first.store(in: &bytes)
        repeats.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(1, of: 2)
        first = try bytes.next()
        repeats = 1 < count ? try bytes.next() : []
    }
}

extension Confirmation {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        commands.store(in: &bytes)
        externalIDs.store(in: &bytes)
        resets.store(in: &bytes)
        forward.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(4, of: 4)
        commands = try bytes.next()
        externalIDs = try bytes.next()
        resets = try bytes.next()
        forward = try bytes.next()
    }
}

extension Creation {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 5)
        registration.store(in: &bytes)
        moment.store(in: &bytes)
        facts.store(in: &bytes)
        commands.store(in: &bytes)
        step.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(5, of: 5)
        registration = try bytes.next()
        moment = try bytes.next()
        facts = try bytes.next()
        commands = try bytes.next()
        step = try bytes.next()
    }
}

extension Creation.Means {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .code(let value):
            bytes.add(byte: 0)
            value.store(in: &bytes)
        case .unlinked:
            bytes.add(byte: 1)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .code(try bytes.next())
        case 1: self = .unlinked
        default: throw StoredReader.damaged
        }
    }
}

extension Creation.Question {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        want.store(in: &bytes)
        attempt.store(in: &bytes)
        forward.store(in: &bytes)
        expiry.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(3, of: 4)
        want = try bytes.next()
        attempt = try bytes.next()
        forward = try bytes.next()
        expiry = 3 < count ? try bytes.next() : nil
    }
}

extension Creation.Step {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .asking(let value):
            bytes.add(byte: 0)
            value.store(in: &bytes)
        case .awaitingLinker(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        case .confirming(let value):
            bytes.add(byte: 2)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .asking(try bytes.next())
        case 1: self = .awaitingLinker(deadline: try bytes.next())
        case 2: self = .confirming(try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension Creation.Want {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .user(let value0, let value1):
            bytes.add(byte: 0)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
        case .linkersTurn(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .user(by: try bytes.next(), resets: try bytes.next())
        case 1: self = .linkersTurn(deadline: try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension Election {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        commands.store(in: &bytes)
        code.store(in: &bytes)
        forward.store(in: &bytes)
        resets.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(3, of: 4)
        commands = try bytes.next()
        code = try bytes.next()
        forward = try bytes.next()
        resets = 3 < count ? try bytes.next() : []
    }
}

extension FailedCreation {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        registration.store(in: &bytes)
        commands.store(in: &bytes)
        confirmations.store(in: &bytes)
        failure.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(4, of: 4)
        registration = try bytes.next()
        commands = try bytes.next()
        confirmations = try bytes.next()
        failure = try bytes.next()
    }
}

extension Failure {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .rejected(let value0, let value1):
            bytes.add(byte: 0)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
        case .expired:
            bytes.add(byte: 1)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .rejected(try bytes.next(), try bytes.next())
        case 1: self = .expired
        default: throw StoredReader.damaged
        }
    }
}

extension HeldCode {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        externalID.store(in: &bytes)
        digest.store(in: &bytes)
        moment.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(3, of: 3)
        externalID = try bytes.next()
        digest = try bytes.next()
        moment = try bytes.next()
    }
}

extension Installation.State {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .creating(let value):
            bytes.add(byte: 0)
            value.store(in: &bytes)
        case .present(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        case .linking(let value0, let value1):
            bytes.add(byte: 2)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
        case .electing(let value0, let value1):
            bytes.add(byte: 3)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
        case .resetting(let value):
            bytes.add(byte: 4)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .creating(try bytes.next())
        case 1: self = .present(try bytes.next())
        case 2: self = .linking(try bytes.next(), try bytes.next())
        case 3: self = .electing(try bytes.next(), try bytes.next())
        case 4: self = .resetting(try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension LinkFacts {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 3)
        version.store(in: &bytes)
        status.store(in: &bytes)
        user.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(2, of: 3)
        version = try bytes.next()
        status = try bytes.next()
        user = 2 < count ? try bytes.next() : nil
    }
}

extension LinkFacts.KnownUser {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 6)
        id.store(in: &bytes)
        isLinked.store(in: &bytes)
        isActive.store(in: &bytes)
        isUsersFirst.store(in: &bytes)
        waitsForPhone.store(in: &bytes)
        isRestricted.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(4, of: 6)
        id = try bytes.next()
        isLinked = try bytes.next()
        isActive = try bytes.next()
        isUsersFirst = try bytes.next()
        waitsForPhone = 4 < count ? try bytes.next() : false
        isRestricted = 5 < count ? try bytes.next() : false
    }
}

extension PendingLink {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        commands.store(in: &bytes)
        step.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(2, of: 2)
        commands = try bytes.next()
        step = try bytes.next()
    }
}

extension PendingLink.Step {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .asking(let value0, let value1, let value2):
            bytes.add(byte: 0)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
            value2.store(in: &bytes)
        case .awaitingLinker(let value):
            bytes.add(byte: 1)
            value.store(in: &bytes)
        case .confirming(let value):
            bytes.add(byte: 2)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .asking(try bytes.next(), forward: try bytes.next(), resets: try bytes.next())
        case 1: self = .awaitingLinker(deadline: try bytes.next())
        case 2: self = .confirming(try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension Registration {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 6)
        device.store(in: &bytes)
        sdkVersion.store(in: &bytes)
        appVersion.store(in: &bytes)
        creation.store(in: &bytes)
        redeemed.store(in: &bytes)
        seenAt.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        let count = try bytes.members(4, of: 6)
        device = try bytes.next()
        sdkVersion = try bytes.next()
        appVersion = try bytes.next()
        creation = try bytes.next()
        redeemed = 4 < count ? try bytes.next() : nil
        seenAt = 5 < count ? try bytes.next() : nil
    }
}

extension Registration.Redeemed {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        digest.store(in: &bytes)
        purpose.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(2, of: 2)
        digest = try bytes.next()
        purpose = try bytes.next()
    }
}

extension Reset {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 4)
        cause.store(in: &bytes)
        facts.store(in: &bytes)
        resets.store(in: &bytes)
        forward.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(4, of: 4)
        cause = try bytes.next()
        facts = try bytes.next()
        resets = try bytes.next()
        forward = try bytes.next()
    }
}

extension Reset.Cause {
    public func store(in bytes: inout StoredWriter) {
        switch self {
        case .command(let value0, let value1):
            bytes.add(byte: 0)
            value0.store(in: &bytes)
            value1.store(in: &bytes)
        case .commandForUnknown:
            bytes.add(byte: 1)
        case .failure(let value):
            bytes.add(byte: 2)
            value.store(in: &bytes)
        }
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        switch try bytes.byte() {
        case 0: self = .command(try bytes.next(), userID: try bytes.next())
        case 1: self = .commandForUnknown
        case 2: self = .failure(try bytes.next())
        default: throw StoredReader.damaged
        }
    }
}

extension Waiting {
    public func store(in bytes: inout StoredWriter) {
        bytes.add(count: 2)
        source.store(in: &bytes)
        id.store(in: &bytes)
    }

    public init(stored bytes: inout StoredReader) throws(StorageError) {
        _ = try bytes.members(2, of: 2)
        source = try bytes.next()
        id = try bytes.next()
    }
}
