// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Testing

@testable import Runtime

/// Who sent a record (L1, L2, docs/contracts.md "Signature").
@Suite struct AuthenticatorTests {
    private func reason(
        _ record: KafkaRecord, _ attributes: EventAttributes, _ authenticator: Authenticator = Fixture.authenticator(),
        now: Timestamp = Fixture.now
    ) -> AuthenticationFailure.Reason? {
        do {
            _ = try authenticator.authenticate(record, attributes, now: now)
            return nil
        } catch {
            // What operators read never has a secret in it; what the sender reads neither.
            for text in [error.detail, error.messageForSender] { #expect(!text.contains("secret")) }
            return error.reason
        }
    }

    private func withHeader(_ text: String?) throws -> KafkaRecord {
        var record = try Fixture.record(signedBy: nil)
        if let text { record.headers.append(Header(HeaderName.signature, Array(text.utf8))) }
        return record
    }

    @Test func aGoodSignatureNamesAppAndKey() throws {
        let (app, principal) = try Fixture.authenticator().authenticate(
            Fixture.record(), Fixture.attributes(), now: Fixture.now)
        #expect(app.id == "demo")
        #expect(principal == Principal(kind: .apiKey("demo-backend"), scopes: [.userLink, .userDelete]))
    }

    @Test func row1EveryFailureHasItsName() throws {
        let mine = Fixture.attributes()
        #expect(reason(try withHeader(nil), mine) == .signatureMissing)
        #expect(reason(try withHeader("v1;kid=demo-backend;short"), mine) == .signatureMalformed)
        #expect(reason(try Fixture.record(secret: Fixture.secret("x")), mine) == .signatureInvalid)
        #expect(reason(try Fixture.record(signedBy: "nobody"), mine) == .keyUnknown)
        #expect(reason(try Fixture.record(signedBy: "other-backend"), mine) == .keyOfOtherApp)
        #expect(reason(try Fixture.record(signedBy: "demo-revoked"), mine) == .keyRevoked)
        #expect(reason(try Fixture.record(signedBy: "demo-expired"), mine) == .keyExpired)
        #expect(reason(try Fixture.record(signedBy: "demo-both"), mine) == .keyRevoked)
        for app in ["unknown", "Demo", "", "demo "] {
            let attributes = Fixture.attributes(app: app)
            #expect(reason(try Fixture.record(attributes), attributes) == .appUnknown)
        }
    }

    @Test func aKeyEndsExactlyAtItsInstant() throws {
        let mine = Fixture.attributes()
        #expect(reason(try Fixture.record(signedBy: "demo-now"), mine) == .keyExpired)
        #expect(reason(try Fixture.record(signedBy: "demo-soon"), mine) == nil)
        let before = Timestamp(milliseconds: Fixture.now.milliseconds - 1)
        #expect(reason(try Fixture.record(signedBy: "demo-now"), mine, now: before) == nil)
    }

    @Test func everythingSignedIsCovered() throws {
        let record = try Fixture.record()
        var other = record
        other.value?.append(0x20)
        #expect(reason(other, Fixture.attributes()) == .signatureInvalid)
        other = record
        other.topicPartition = TopicPartition(topic: "identity.other.commands.v1", partition: 0)
        #expect(reason(other, Fixture.attributes()) == .signatureInvalid)
        other = record
        other.headers.append(Header("ce_id", Array("c2".utf8)))
        #expect(reason(other, Fixture.attributes()) == .signatureInvalid)
        other = record
        other.headers.append(Header("traceparent", Array("x".utf8)))
        #expect(reason(other, Fixture.attributes()) == nil)
    }

    @Test func theLastSignatureHeaderCounts() throws {
        var record = try Fixture.record()
        record.headers.insert(Header(HeaderName.signature, Array("junk".utf8)), at: 0)
        #expect(reason(record, Fixture.attributes()) == nil)
    }

    // MARK: The internal key

    private func speaking(_ type: String?, _ id: String?) -> EventAttributes {
        var attributes = Fixture.attributes()
        attributes.authType = type
        attributes.authID = id
        return attributes
    }

    private func principal(
        _ attributes: EventAttributes, _ authenticator: Authenticator = Fixture.authenticator(),
        signedBy key: String? = Signature.internalKeyID
    ) throws -> Principal {
        try authenticator.authenticate(Fixture.record(attributes, signedBy: key), attributes, now: Fixture.now)
            .principal
    }

    @Test func theInternalKeySpeaksForItselfOrForOthers() throws {
        #expect(
            try principal(speaking(nil, nil)) == Principal(kind: .service, scopes: Set(Scope.allCases)))
        #expect(
            try principal(speaking("api_key", "demo-sdk")) == Principal(kind: .apiKey("demo-sdk"), scopes: [.sdk]))
        #expect(try principal(speaking("app_user", "u1")) == Principal(kind: .user("u1"), scopes: [.sdk]))
    }

    @Test(
        arguments: [
            ("api_key", nil, .principalInvalid), (nil, "demo-sdk", .principalInvalid),
            ("app_user", nil, .principalInvalid),
            ("api_key", "nobody", .principalInvalid), ("api_key", "other-backend", .principalInvalid),
            ("root", "x", .principalInvalid), ("", "", .principalInvalid), ("API_KEY", "demo-sdk", .principalInvalid),
            ("app_user", "", .principalInvalid), ("api_key", "demo-expired", .keyExpired),
            ("api_key", "demo-revoked", .keyRevoked),
        ] as [(String?, String?, AuthenticationFailure.Reason)]) func theInternalKeyIsNotBelievedBlindly(
            _ type: String?, _ id: String?, _ expected: AuthenticationFailure.Reason
        ) throws
    {
        let attributes = speaking(type, id)
        let record = try Fixture.record(attributes, signedBy: Signature.internalKeyID)
        #expect(reason(record, attributes) == expected)
        #expect(reason(record, attributes, Fixture.authenticator(.cluster)) == expected)
    }

    @Test func theInternalKeyMustMatchAndExist() throws {
        let mine = Fixture.attributes()
        let record = try Fixture.record(signedBy: Signature.internalKeyID)
        #expect(reason(record, mine, Fixture.authenticator(keys: .none)) == .keyUnknown)
        let other = DeploymentKeys(internalKeys: [SymmetricKey(data: Array("another internal key".utf8))])
        #expect(reason(record, mine, Fixture.authenticator(keys: other)) == .signatureInvalid)
        let unknown = Fixture.attributes(app: "unknown")
        #expect(reason(try Fixture.record(unknown, signedBy: Signature.internalKeyID), unknown) == .appUnknown)
    }

    @Test func anAPIKeyCannotSpeakForOthers() throws {
        for attributes in [speaking("api_key", "demo-sdk"), speaking("app_user", "u1"), speaking("root", nil)] {
            #expect(try principal(attributes, signedBy: "demo-backend").kind == .apiKey("demo-backend"))
        }
    }

    /// Ids of our own messages follow from ids that senders know; under our sources anybody could take them first.
    @Test func onlyTheInternalKeySpeaksUnderOurSources() throws {
        for source in ["identitybus/link", "identitybus/gateway", "identitybus/"] {
            var attributes = Fixture.attributes()
            attributes.source = source
            let forged = try Fixture.record(attributes, signedBy: "demo-backend")
            #expect(reason(forged, attributes, Fixture.authenticator()) == .principalInvalid)
            #expect(try principal(attributes, signedBy: Signature.internalKeyID).kind == .service)
        }
    }

    /// While keys are changed, what the earlier one signed is believed.
    @Test func earlierInternalKeysAreBelieved() throws {
        let attributes = Fixture.attributes()
        let record = try Fixture.record(attributes, signedBy: Signature.internalKeyID)
        let new = SymmetricKey(data: Array("another-internal-key-of-the-tests".utf8))
        let after = Fixture.authenticator(keys: DeploymentKeys(internalKeys: [new]))
        #expect(reason(record, attributes, after) == .signatureInvalid)
        let during = Fixture.authenticator(keys: DeploymentKeys(internalKeys: [new, Fixture.internalKey]))
        #expect(reason(record, attributes, during) == nil)
    }

    // MARK: Keys by purpose

    private func asGateway(_ type: String?, _ id: String?, source: String = "identitybus/gateway") -> EventAttributes {
        var attributes = speaking(type, id)
        attributes.source = source
        return attributes
    }

    @Test func theGatewaysKeySpeaksForOthersOnly() throws {
        let gateway = Signature.gatewayKeyID
        #expect(try principal(asGateway("api_key", "demo-sdk"), signedBy: gateway).kind == .apiKey("demo-sdk"))
        #expect(try principal(asGateway("app_user", "u1"), signedBy: gateway).kind == .user("u1"))
        for attributes in [
            asGateway(nil, nil), asGateway("api_key", nil), asGateway(nil, "demo-sdk"), asGateway("api_key", "nobody"),
            asGateway("service", "link"), asGateway("app_user", "u1", source: "identitybus/link"),
            asGateway("app_user", "u1", source: "mine"), asGateway("app_user", "u1", source: "identitybus/"),
        ] {
            #expect(reason(try Fixture.record(attributes, signedBy: gateway), attributes) == .principalInvalid)
        }
    }

    @Test func eachKeySignsItsOwnAndNothingElse() throws {
        let ids = [Signature.internalKeyID, Signature.gatewayKeyID, Signature.eventsKeyID]
        let attributes = asGateway("app_user", "u1")
        let own: [String: KeyPurpose] = [ids[0]: .commands, ids[1]: .gateway]
        for id in ids {
            for purpose in KeyPurpose.allCases {
                let record = try Fixture.record(
                    attributes, signedBy: id, secret: purpose.key(from: Fixture.internalKey))
                #expect((reason(record, attributes) == nil) == (own[id] == purpose), "\(id) \(purpose)")
                let said = Fixture.attributes()
                let isEvent = id == Signature.eventsKeyID && purpose == .events
                let publication = try Fixture.record(said, signedBy: id, secret: purpose.key(from: Fixture.internalKey))
                #expect((refusal(publication, said) == nil) == isEvent, "\(id) \(purpose)")
            }
        }
    }

    private func refusal(
        _ record: KafkaRecord, _ attributes: EventAttributes, _ authenticator: Authenticator = Fixture.authenticator()
    ) -> AuthenticationFailure.Reason? {
        do {
            _ = try authenticator.authenticate(publication: record, attributes)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func theInternalKeyItselfSignsNothing() throws {
        for id in [Signature.internalKeyID, Signature.gatewayKeyID, Signature.eventsKeyID] {
            let record = try Fixture.record(asGateway("app_user", "u"), signedBy: id, secret: Fixture.internalKey)
            #expect(reason(record, asGateway("app_user", "u")) != nil)
            #expect(refusal(record, asGateway("app_user", "u")) != nil)
        }
    }

    @Test func onlyServicesPublish() throws {
        let mine = Fixture.attributes()
        let events = Signature.eventsKeyID
        #expect(refusal(try Fixture.record(signedBy: events), mine) == nil)
        #expect(refusal(try withHeader(nil), mine) == .signatureMissing)
        #expect(refusal(try withHeader("v1;kid=events;short"), mine) == .signatureMalformed)
        #expect(refusal(try Fixture.record(signedBy: "demo-backend"), mine) == .principalInvalid)
        #expect(refusal(try Fixture.record(signedBy: Signature.gatewayKeyID), mine) == .principalInvalid)
        #expect(refusal(try Fixture.record(signedBy: events), mine, Fixture.authenticator(keys: .none)) == .keyUnknown)
        // Whose key led to it does not make it that one's.
        let forAnother = speaking("api_key", "demo-backend")
        #expect(refusal(try Fixture.record(forAnother, signedBy: events), forAnother) == nil)
        #expect(
            refusal(try Fixture.record(forAnother, signedBy: nil), forAnother, Fixture.authenticator(.cluster)) == nil)
        let unknown = Fixture.attributes(app: "unknown")
        #expect(refusal(try Fixture.record(unknown, signedBy: events), unknown) == .appUnknown)
    }

    /// What passes between the gateway and the services has a key of its own: it need not hold the one of events.
    @Test func theGatewayReadsItsOwnRepliesAndCannotWriteEvents() throws {
        let text = Fixture.keys.text(for: DeploymentKeys.gatewayPurposes)
        let keys = try #require(DeploymentKeys(text: text, purposes: DeploymentKeys.gatewayPurposes))
        let topics = Topics()
        let publications = Publications(keys, topics: topics)
        func record(_ id: String, _ topic: String) throws -> KafkaRecord {
            try Fixture.record(signedBy: id, topic: topic)
        }
        #expect(publications.isGenuine(try record("gateway", topics.gatewayReplies)))
        #expect(!publications.isGenuine(try record("events", topics.gatewayReplies)))
        #expect(!publications.isGenuine(try record("internal", topics.gatewayReplies)))
        for topic in [topics.events("link"), topics.replies(to: "user"), topics.replies] {
            #expect(!publications.canCheck(topic))
            let all = Publications(Fixture.keys, topics: topics)
            #expect(all.isGenuine(try record("events", topic)))
            #expect(!all.isGenuine(try record("gateway", topic)))
        }
    }

    @Test func theEventsKeyOpensNothingElse() throws {
        let text = Fixture.keys.text(for: DeploymentKeys.readerPurposes)
        let keys = try #require(DeploymentKeys(text: text, purposes: DeploymentKeys.readerPurposes))
        let publications = Publications(keys, topics: Topics())
        #expect(publications.isGenuine(try Fixture.record(signedBy: Signature.eventsKeyID)))
        #expect(!publications.isGenuine(try Fixture.record(signedBy: "demo-backend")))
        #expect(publications.canCheck(Fixture.topic) && !publications.canCheck("identity.replies.gateway.v1"))
        #expect(!Publications(.none, topics: Topics()).canCheck(Fixture.topic))
        let mine = Fixture.attributes()
        #expect(reason(try Fixture.record(signedBy: Signature.eventsKeyID), mine) == .keyUnknown)
    }

    @Test func clusterTrustBelievesTheEnvelope() throws {
        let cluster = Fixture.authenticator(.cluster, keys: .none)
        #expect(try principal(speaking(nil, nil), cluster, signedBy: nil).kind == .service)
        #expect(try principal(speaking("api_key", "demo-sdk"), cluster, signedBy: nil).kind == .apiKey("demo-sdk"))
        #expect(try principal(speaking("app_user", "u1"), cluster, signedBy: nil).kind == .user("u1"))
        #expect(try principal(speaking("app_install", "c1"), cluster, signedBy: nil).kind == .install("c1"))
        let expired = try principal(speaking("app_install_expired", "c1"), cluster, signedBy: nil)
        #expect(expired.kind == .expiredInstall("c1") && expired.scopes == [.sdk])
        let unknown = Fixture.attributes(app: "unknown")
        #expect(reason(try Fixture.record(unknown, signedBy: nil), unknown, cluster) == .appUnknown)
    }

    // MARK: What the sender is told

    /// Who cannot prove to hold a key learns nothing about which apps and keys there are.
    @Test func theSenderLearnsNoMoreThanItMay() {
        func message(_ reason: AuthenticationFailure.Reason) -> String {
            AuthenticationFailure(reason, "detail").messageForSender
        }
        let alike: [AuthenticationFailure.Reason] = [
            .signatureInvalid, .appUnknown, .keyUnknown, .keyOfOtherApp, .principalInvalid,
        ]
        #expect(Set(alike.map(message)).count == 1)
        for reason in AuthenticationFailure.Reason.allCases {
            #expect(!message(reason).contains("detail"))
            #expect(!message(reason).isEmpty)
        }
        #expect(
            AuthenticationFailure.Reason.allCases.map(\.rawValue) == [
                "SIGNATURE_MISSING", "SIGNATURE_MALFORMED", "SIGNATURE_INVALID", "APP_UNKNOWN", "KEY_UNKNOWN",
                "KEY_OF_OTHER_APP", "KEY_EXPIRED", "KEY_REVOKED", "PRINCIPAL_INVALID",
            ])
    }

    /// Expired and revoked are told only to who holds the key.
    @Test func aForgedSignatureOfAnExpiredKeyIsJustInvalid() throws {
        for key in ["demo-expired", "demo-revoked"] {
            let record = try Fixture.record(signedBy: key, secret: Fixture.secret("guess"))
            #expect(reason(record, Fixture.attributes()) == .signatureInvalid)
        }
    }

    // MARK: Row 2

    @Test func row2Scopes() {
        func refusal(_ principal: Principal, _ scope: Scope) -> ReasonCode? {
            do throws(Rejection) {
                try principal.authorize(scope)
                return nil
            } catch {
                return error.reason
            }
        }
        let backend = Principal(kind: .apiKey("k"), scopes: [.userLink])
        let user = Principal(kind: .user("u"), scopes: [.sdk])
        let install = Principal(kind: .install("c"), scopes: [.sdk])
        let service = Principal(kind: .service, scopes: Set(Scope.allCases))
        for scope in Scope.allCases {
            #expect(refusal(backend, scope) == (scope == .userLink ? nil : .insufficientScope))
            #expect(refusal(user, scope) == (scope == .sdk ? nil : .userTokenNotAllowed))
            #expect(refusal(install, scope) == (scope == .sdk ? nil : .userTokenNotAllowed))
            #expect(refusal(service, scope) == nil)
        }
    }
}
