// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import Runtime

/// What follows from a service's list of inputs.
@Suite struct InputTests {
    @Test func topicsAndGroups() {
        let topics = Topics(prefix: "p.")
        let found = SagaService.sources.map {
            "\($0.topic(topics, of: SagaService.name)) \($0.group(topics, of: SagaService.name))"
        }
        #expect(
            found == [
                "p.identity.saga.commands.v1 p.identity.saga", "p.identity.replies.saga.v1 p.identity.saga.replies",
                "p.identity.peer.events.v1 p.identity.saga.events.peer",
            ])
        #expect(FakeService.sources == [.commands])
    }

    @Test func scopesAreOfCommandsOnly() {
        #expect(SagaService.inputs.scopes() == [SagaService.begin: .userLink, SagaService.Remind.type: .internal])
    }

    @Test func whatTheInternalKeyIsNeededFor() {
        #expect(SagaService.needsInternalKey)
        #expect(!FakeService.needsInternalKey)
    }

    @Test func unknownTypesAreNotRead() {
        #expect(throws: Rejection(.unknownType)) { try FakeService.inputs.read("identity.fake.put.v2", .null) }
        #expect(throws: Rejection.self) { try SagaService.inputs.read(ReceivedReply.type, ["status": "succeeded"]) }
    }
}
