// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Runtime

/// The deployment that inputs are given to. Everything is fixed, so that the same bytes mean the same again.
enum FuzzWorld {
    static let now = Timestamp(milliseconds: 1_800_000_000_000)
    static let topics = Topics()
    static let internalKey = SymmetricKey(data: Array("the-internal-key-of-the-fuzzer".utf8))
    static let keys = DeploymentKeys(internalKeys: [internalKey])
    static let secrets = DerivedSecrets(keys, salt: [UInt8](repeating: 7, count: 32))

    static let apps: AppDirectory = {
        do {
            return try AppsFile.parse(file) { $0 }
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    /// The secret that signs under this key id.
    static func secret(_ keyID: String) -> SymmetricKey {
        switch keyID {
        case Signature.internalKeyID: KeyPurpose.commands.key(from: internalKey)
        case Signature.eventsKeyID: KeyPurpose.events.key(from: internalKey)
        case Signature.gatewayKeyID: KeyPurpose.gateway.key(from: internalKey)
        default: apps.key(KeyID(keyID))?.key.secret ?? internalKey
        }
    }

    static let file = """
        apps:
          - id: demo
            keys:
              - {id: backend, secret: secret-backend, scopes: [user.link, user.delete, verification.check]}
              - {id: sdk, secret: secret-sdk, scopes: [sdk, identity.sync]}
              - {id: admin, secret: secret-admin, scopes: [admin]}
              - {id: old, secret: secret-old, scopes: [user.link], expires: "2020-01-01"}
            sdk: {appSecret: app-secret-demo, keysOpenInstalls: true}
            gateway: {keyOnly: [identify, login, logout, modify, search, alias], maxAgeSeconds: 60}
            sync: {strategy: conversion}
          - id: support
            replies: identity.replies.support
            keys:
              - {id: vouch, secret: secret-vouch, scopes: [verification.check, identity.sync, identity.vouch]}
              - {id: page, secret: secret-page, scopes: [sdk, identity.sync]}
            gateway: {keyOnly: true, origins: ["https://shop.example"]}
            sync: {strategy: userIdThenEmail}
            verification:
              mode: enforce
              signedFields: vendor
              keys: [{id: k1, secret: verification-secret-1}]
              identityTokenSecret: identity-token-secret
        """
}
