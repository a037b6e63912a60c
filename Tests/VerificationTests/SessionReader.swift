// SPDX-License-Identifier: Apache-2.0

import Contracts

/// What somebody knows of a device who reads nothing but the session-changed events.
struct SessionReader: Equatable {
    var state: VerificationState = .anonymous
    var mayFileIssues = true
    var user: MPID?
    var isKnown = false

    /// - Returns: what is wrong with the event, after all that was told before.
    mutating func read(_ event: SessionChanged) -> String? {
        // Of a device whose user was erased nothing is known.
        var isErased = false
        defer { (state, mayFileIssues, isKnown) = (event.state, event.mayFileIssues, !isErased) }
        switch event.cause {
        case .login where event.state == .anonymous:
            return user.map { "an anonymous login while \($0) is there" }
        case .login:
            defer { user = event.mpid }
            guard let comer = event.mpid else { return "a login of nobody" }
            if let user, user != comer { return "the login of \(comer) before the logout of \(user)" }
            if user == event.mpid, state == event.state, mayFileIssues == event.mayFileIssues {
                return "the same login twice"
            }
            return nil
        case .logout:
            defer { user = nil }
            if event.mpid != user { return "the logout of another than who is there" }
            return user == nil && state == .anonymous && isKnown ? "a logout while nobody is there" : nil
        case .refusal:
            return event.state == .unverified && !event.mayFileIssues ? nil : "a refusal that refuses nothing"
        case .ended where event.reason == .erased:
            defer { user = nil }
            isErased = true
            return event.mpid == user && user != nil ? nil : "nobody was erased"
        case .ended where event.reason == .userChanged || event.reason == .detached:
            defer { user = nil }
            return event.mpid == user && user != nil ? nil : "nobody left"
        case .ended:
            if event.mpid != user { return "the end of another's session" }
            return event.state == .unverified && event.state != state || event.mayFileIssues != mayFileIssues
                ? nil : "an end that ends nothing"
        }
    }
}
