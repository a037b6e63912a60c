// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Link
import Messaging
import Runtime
import Storage
import Sync
import TestKit
import User
import Verification

/// The services that can be simulated.
public enum SimulatedService: String, CaseIterable, Sendable {
    case link, user, sync, verification

    /// Those that run beside it. What is sent to others, ``Peers`` answers.
    var deployed: [SimulatedService] { self == .user ? [.user, .link] : [self] }
}

/// What every simulation of a process shares, because making it takes time: the apps, the keys, the empty stores.
final class Kit {
    let folder: URL
    let apps: AppsSource
    private let keys: DeploymentKeys
    private var templates: [SimulatedService: Data] = [:]
    private var configurations: [SimulatedService: ServiceConfiguration] = [:]

    static let internalKey = "the-internal-key-of-the-simulation"
    static let app = "demo"
    static let tokenSecret = "test_secret_key_0123456789"

    init() throws {
        let memory = URL(filePath: "/dev/shm")
        let place =
            FileManager.default.isWritableFile(atPath: memory.path) ? memory : FileManager.default.temporaryDirectory
        folder = place.appending(path: "identitybus-simulation-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appending(path: "apps.yaml")
        try Data(Self.yaml.utf8).write(to: path)
        keys = DeploymentKeys(internalKeys: [SymmetricKey(data: Array(Self.internalKey.utf8))])
        apps = try AppsSource(path: path.path, keys: keys, weakSecrets: .warn, logger: .quiet)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private static let yaml = """
        apps:
          - id: demo
            keys:
              - id: demo-all
                secret: demo-secret-demo-all
                scopes: [user.link, user.delete, sdk, identity.sync, identity.vouch, verification.check, admin]
            linking: {enabled: true}
            sdk: {appSecret: demo-app-secret, keysOpenInstalls: true}
            sync:
              strategy: conversion
              priority: [customerid, email, ios_idfv, device_application_stamp]
              loginIdentities: [customerid, email]
              uniqueIdentities: [customerid, email]
              immutableIdentities: []
            verification:
              mode: enforce
              signedFields: vendor
              keys: [{id: k1, secret: \(tokenSecret)}]
        """

    func template(_ service: SimulatedService) throws -> Data {
        if let known = templates[service] { return known }
        let made =
            switch service {
            case .link: try SimulatedStore.template(LinkService.self, in: folder)
            case .user: try SimulatedStore.template(UserService.self, in: folder)
            case .sync: try SimulatedStore.template(SyncService.self, in: folder)
            case .verification: try SimulatedStore.template(VerificationService.self, in: folder)
            }
        templates[service] = made
        return made
    }

    func configuration(_ service: SimulatedService) throws -> ServiceConfiguration {
        if let known = configurations[service] { return known }
        var environment = KafkaConfiguration.embeddedEnvironment
        environment["KAFKA_BOOTSTRAP_SERVERS"] = "simulated:9092"
        environment["IDENTITYBUS_INTERNAL_KEY"] = Self.internalKey
        var made = try ServiceConfiguration(environment: environment, service: service.rawValue)
        // Several replicas, which is what PostgreSQL is for.
        made.database = .postgresql(url: "postgresql://simulated")
        made.drainTimeout = .seconds(2)
        configurations[service] = made
        return made
    }

    /// Signs as a backend of the app.
    var outsider: Seal { Seal("demo-all", SymmetricKey(data: Array("demo-secret-demo-all".utf8))) }
    /// Signs commands as a service.
    var insider: Seal { Seal(Signature.internalKeyID, keys.signing(.commands)) }
    /// Signs replies and events as a service.
    var publisher: Seal { Seal(Signature.eventsKeyID, keys.signing(.events)) }
    var impostor: Seal { Seal("demo-all", SymmetricKey(data: Array("not the secret of demo-all".utf8))) }
}
