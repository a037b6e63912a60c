// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

extension RandomSequenceTests {
    /// Who asks for an erasure by identities may see by a search whom it is going to erase; beside this one only profiles
    /// go that were aliased.
    func onlyWhoIsFoundIsErased(
        _ command: EraseProfile, _ state: SyncState, _ model: NaiveSyncModel, _ context: DecisionContext,
        _ before: SyncState, _ trace: Comment
    ) throws {
        let gone = state.profiles.values.filter { $0.isErased && before.profiles[$0.key]?.isErased == false }
        let named = gone.filter { profile in !model.pairs.contains { $0.of[0] == profile.mpid } }
        try #require(named.count <= 1, trace)
        guard let mpid = named.first?.mpid, command.mpid == nil else { return }
        var world = context
        var settings = context.app.sync
        settings.searchByAnyIdentity = true
        settings.throttle.devicePerSecond = 0
        settings.throttle.loginPerSecond = 0
        world.app = AppSettings(id: context.app.id, sync: settings)
        let request = SyncRequest(deviceId: "nobody's", knownIdentities: command.identities.mapValues { .some($0) })
        let found = Answer(SyncDecider(before, world, aliasDelay: 1000).decide(.search(request)).outcome)
        // Whoever was linked since the erasure was asked for is found now, and was not meant (S115).
        if case .sync(let result) = found, let mark = before.profile(context.app.id, result.mpid)?.mark,
            mark.linkedAt > context.moment.milliseconds
        {
            return
        }
        guard case .sync(let result) = found, result.mpid == mpid else {
            Issue.record("\(trace): a search finds \(found), and \(mpid) was erased")
            return
        }
    }
}
