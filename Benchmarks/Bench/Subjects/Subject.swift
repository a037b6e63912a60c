// SPDX-License-Identifier: Apache-2.0

/// What is measured.
enum Subject: String, CaseIterable {
    /// Link requests.
    case link
    /// Creations of users with a code: a saga over two services.
    case user
    /// Logins and what follows them, against stored profiles.
    case sync
    /// Checks of a token that change nothing.
    case check
    /// Verified logins: a saga over two services.
    case login
    /// Link requests by HTTP.
    case gateway

    /// The processes that it takes; the one under test is the first.
    var services: [String] {
        switch self {
        case .link: ["link"]
        case .user: ["user", "link"]
        case .sync: ["sync"]
        case .check, .login: ["verification", "sync"]
        case .gateway: ["gateway", "link"]
        }
    }

    /// The app's sections in the apps file. Limits on rates are those that are shipped.
    var settings: [String] {
        switch self {
        case .link, .gateway: []
        case .user: ["sdk: {appSecret: \(UserWorkload.appSecret)}"]
        case .sync: ["sync: {strategy: conversion}"]
        case .check, .login: VerificationWorkload.settings
        }
    }

    /// What stands on the topic before the services start.
    func backlog(_ count: Int, profiles: Int, _ stage: Stage) throws -> Workload {
        let factory = CommandFactory(stage)
        switch self {
        case .link: return try LinkWorkload.requests(count, factory)
        case .user: return try UserWorkload.creations(count, factory)
        case .sync:
            try StoredProfiles.load(profiles, into: stage)
            return try SyncWorkload.commands(count, profiles: profiles, factory)
        case .check: return try VerificationWorkload.checks(count, factory)
        case .login: return try VerificationWorkload.logins(count, factory)
        case .gateway: throw BenchError("of gateway, latency is measured")
        }
    }

    /// What is sent at a steady rate: one reply for each command.
    func steady(_ count: Int, rate: Int, profiles: Int, _ stage: Stage) throws -> Workload {
        switch self {
        case .link: try LinkWorkload.steady(count, rate: rate, CommandFactory(stage))
        case .user, .sync, .check, .login, .gateway: try backlog(count, profiles: profiles, stage)
        }
    }
}
