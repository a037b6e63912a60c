// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts

/// What a decider answers: the outcome, the changes to the service's state, and what to tell others.
/// `events` are published in this order, before the reply.
public struct Decision<Change: Sendable>: Sendable {
    public var outcome: Outcome
    public var changes: [Change]
    public var events: [any EventMessage]

    public init(_ outcome: Outcome, changes: [Change] = [], events: [any EventMessage] = []) {
        self.outcome = outcome
        self.changes = changes
        self.events = events
    }

    public static func rejected(
        _ reason: ReasonCode, _ message: String? = nil, events: [any EventMessage] = []
    ) -> Decision {
        Decision(.rejected(Rejection(reason, message)), events: events)
    }
}
