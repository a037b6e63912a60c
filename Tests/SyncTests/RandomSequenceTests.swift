// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Sync

/// Random command sequences through the decider and through a naive model: the same answers, events, forwards, later answers and
/// state; and what must hold whatever happens.
@Suite struct RandomSequenceTests {
    private static let length = 60

    /// S60.
    @Test func deciderAndModelAgree() throws {
        var reached = Reached()
        try runSequences(300, until: { reached.isAll }) { try run(seed: $0, &reached) }
        // A test that never reaches a rule proves nothing about it.
        #expect(reached.isAll, "\(reached)")
    }

    /// S123, S124: by chance alone, sequences seldom come to what becomes of linked users one after another.
    @Test func deciderAndModelAgreeOnWhoIsWho() throws {
        var reached = Reached()
        try runSequences(150, until: { reached.heirs > 20 && reached.formers > 50 }) {
            try run(seed: $0, isOfPeople: true, &reached)
        }
        #expect(reached.heirs > 20 && reached.formers > 50, "\(reached)")
    }

    /// S126 to S134.
    @Test func deciderAndModelAgreeOnRepairs() throws {
        var reached = Reached()
        try runSequences(200, until: { reached.isRepaired }) { try run(seed: $0, isOfRepairs: true, &reached) }
        #expect(reached.isRepaired, "\(reached)")
    }

    /// S136 to S141.
    @Test func deciderAndModelAgreeOnRestrictions() throws {
        var reached = Reached()
        try runSequences(200, until: { reached.isRestricted }) { try run(seed: $0, isOfRestrictions: true, &reached) }
        #expect(reached.isRestricted, "\(reached)")
    }

    /// S150 to S157.
    @Test func deciderAndModelAgreeOnImports() throws {
        var reached = Reached()
        try runSequences(200, until: { reached.isImported }) { try run(seed: $0, isOfImports: true, &reached) }
        #expect(reached.isImported, "\(reached)")
    }

    /// S202 to S205: nobody goes who is linked, known, on a device or waited for, nor by a clock that is two weeks ahead.
    @Test func deciderAndModelAgreeOnRetention() throws {
        var reached = Reached()
        try runSequences(200, until: { reached.isRetained }) { try run(seed: $0, isOfRetention: true, &reached) }
        #expect(reached.isRetained, "\(reached)")
    }

    /// What sequences came to.
    private struct Reached {
        /// Outcomes and reasons of elements of lists.
        var elements: Set<String> = []
        var rules: Set<SyncRule> = []
        var reasons: Set<ReasonCode> = []
        var drops: Set<AliasDropped.Rule> = []
        var causes: Set<IdentitiesChanged.Reason> = []
        var events: Set<String> = []
        /// Erasures end both ways.
        var ends: Set<Bool> = []
        /// How many erasures found somebody by a former name, and how many profiles were left with one.
        var heirs = 0
        var formers = 0
        /// How many logins left something out, and how many profiles without a barrier had one before.
        var barred = 0
        var lifted = 0
        /// How many answers were about somebody restricted.
        var passed = 0
        /// How many profiles went because nobody came back.
        var expired = 0

        static let reasons: Set<ReasonCode> = [
            .lookupError, .notFoundError, .validationError, .aliasError, .aliasingNotProvisioned, .limitExceeded,
            .verificationRequired, .profileErased, .throttled, .ambiguousIdentity, .insufficientScope,
        ]
        static let events: [any EventMessage.Type] = [
            ProfileCreated.self, CurrentUserChanged.self, IdentitiesChanged.self, ProfileOrphaned.self, Aliased.self,
            AliasDropped.self, ProfileErased.self, CurrentUserErased.self, ValueTooCommon.self,
            LinkedUserChanged.self, ProfileJoined.self,
        ]

        /// Two devices without anybody, an alias and a login are too many for chance: `ErasedProfilesTests` reaches S114.
        static let drops = Set(AliasDropped.Rule.allCases).subtracting([.becameKnown, .detached, .restricted])

        var isAll: Bool {
            rules == Set(SyncRule.allCases).subtracting([.detached, .createdBesideRestricted, .imported])
                && reasons == Self.reasons
                && drops.isSuperset(of: Self.drops)
                && causes == Set(IdentitiesChanged.Reason.allCases).subtracting([.detached])
                && events == Set(Self.events.map { $0.type }) && ends.count == 2
        }

        var isRepaired: Bool {
            rules.contains(.detached) && reasons.isSuperset(of: [.mergeBarred, .limitExceeded, .profileErased])
                && drops.contains(.detached) && causes.contains(.detached) && barred > 50 && lifted > 20
                && events.isSuperset(of: [ProfileDetached.type, MergeBarred.type, MergeAllowed.type])
        }

        var isImported: Bool {
            elements.isSuperset(of: [
                "created", "same", "changed", "invalid", "IDENTITY_TAKEN", "VALUE_NAMES_NOBODY", "PROFILE_ERASED",
                "DEVICE_TAKEN", "LIMIT_EXCEEDED", "BAD_TIME", "DIFFERS", "IMMUTABLE",
            ]) && rules.contains(.imported) && reasons.contains(.verificationRequired)
        }

        var isRetained: Bool {
            events.isSuperset(of: [ProfileExpired.type, DeviceExpired.type, CurrentUserErased.type]) && expired > 50
        }

        var isRestricted: Bool {
            rules.contains(.createdBesideRestricted) && reasons.contains(.restricted) && drops.contains(.restricted)
                && events.isSuperset(of: [RestrictionChanged.type, UserRestrictionChanged.type]) && passed > 100
        }

        mutating func note(_ command: SyncCommand, from before: SyncState, to after: SyncState) {
            lifted += before.profiles.values.count {
                !$0.barriers.isEmpty && after.profiles[$0.key]?.barriers.isEmpty == true
            }
            for profile in before.profiles.values {
                guard let former = profile.former, let now = after.profiles[profile.key] else { continue }
                if case .forget(let forget) = command, forget.names.contains(former.externalID), now.isErased {
                    heirs += 1
                }
            }
            if case .renamed = command {
                formers += after.profiles.values.count { $0.former != nil && before.profiles[$0.key]?.former == nil }
            }
        }

        mutating func note(_ decision: SyncDecider.Decision, _ answer: Answer) {
            barred += decision.events.count { $0 is MergeBarred }
            expired += decision.events.count { $0 is ProfileExpired }
            for event in decision.events {
                events.insert(type(of: event).type)
                switch event {
                case let event as AliasDropped: drops.insert(event.rule)
                case let event as IdentitiesChanged: causes.insert(event.reason)
                case let event as ProfileCreated: rules.insert(event.rule)
                case let event as CurrentUserChanged: rules.insert(event.rule)
                default: break
                }
            }
            switch answer {
            case .sync(let result):
                rules.insert(result.rule)
                if result.isRestricted == true { passed += 1 }
            case .rejected(let reason): reasons.insert(reason)
            case .imported(let results):
                for element in results {
                    elements.insert(element.outcome.rawValue)
                    if let reason = element.reason { elements.insert(reason.rawValue) }
                }
            default: break
            }
        }
    }

    private func run(
        seed: UInt64, isOfPeople: Bool = false, isOfRepairs: Bool = false, isOfRestrictions: Bool = false,
        isOfImports: Bool = false, isOfRetention: Bool = false, _ reached: inout Reached
    ) throws {
        var commands = RandomCommands(
            seed: seed, isOfPeople: isOfPeople, isOfRepairs: isOfRepairs, isOfRestrictions: isOfRestrictions,
            isOfImports: isOfImports, isOfRetention: isOfRetention)
        var model = NaiveSyncModel(commands.settings, enforces: commands.mode == .enforce)
        var state = SyncState()
        var given: Set<MPID> = []
        for place in 0..<Self.length {
            commands.held = Dictionary(uniqueKeysWithValues: model.people.map { ($0.mpid, $0.ids) })
            commands.heard = Dictionary(uniqueKeysWithValues: model.people.map { ($0.mpid, model.heard(of: $0)) })
            commands.heardDevices = model.devices.mapValues { model.heard(of: $0) }
            let step = commands.next(
                profiles: model.people.map(\.mpid).sorted(), aliases: model.aliases,
                forwards: model.erasing.values.flatMap(\.open).sorted())
            let trace = Comment(rawValue: "seed \(seed), step \(place): \(step.command)")
            let decision = SyncDecider(state, step.context, aliasDelay: 1000).decide(step.command)
            #expect(try decision.writtenOtherwise().isEmpty)
            let before = state
            decision.changes.forEach { state.apply($0) }
            commands.note(decision)
            let was = model
            let expected = run(step, &model)
            let answer = Answer(decision.outcome)
            try #require(answer == expected, "\(trace): \(answer) instead of \(expected)")
            var rule: SyncRule? = if case .sync(let result) = expected { result.rule } else { nil }
            if case .detach = step.command { rule = .detached }
            if case .importProfiles = step.command { rule = .imported }
            try compare(decision, model, step.context, trace)
            try remember(decision, &model, step.context, trace)
            try compare(state, model, trace)
            try invariants(state, model, answer, step, before, &given, trace)
            try RepairInvariants(before: before, after: state, step: step).check(decision, trace)
            for settled in model.deeds.settled { reached.ends.insert(settled.answer == .rejected(.serverError)) }
            reached.note(decision, answer)
            reached.note(step.command, from: before, to: state)
            if case .rejected = answer {
                try #require(decision.changes.allSatisfy { $0.onlyCounts } && decision.events.isEmpty, trace)
            } else {
                let told = model.events(since: was, by: step.command, rule)
                let events = Self.ofDevicesInOrder(decision.events, step.command)
                try #require(events.map(Self.inOrder) == told.map(Self.inOrder), trace)
            }
        }
    }

    /// In which order devices hear of a list, nobody says.
    private static func ofDevicesInOrder(
        _ events: [any EventMessage], _ command: SyncCommand
    ) -> [any EventMessage] {
        guard case .importProfiles = command else { return events }
        let ofDevices = events.compactMap { $0 as? CurrentUserChanged }.sorted { $0.deviceId < $1.deviceId }
        return events.filter { !($0 is CurrentUserChanged) } + ofDevices
    }

    /// In which order values of one profile went, nobody says.
    private static func inOrder(_ event: any EventMessage) -> AnyHashable {
        guard var event = event as? IdentitiesChanged else { return AnyHashable(event) }
        event.removed.sort { ($0.type.rawValue, $0.value.text) < ($1.type.rawValue, $1.value.text) }
        return AnyHashable(event)
    }

    /// - Returns: the model's answer.
    private func run(_ step: RandomCommands.Step, _ model: inout NaiveSyncModel) -> Answer {
        let now = step.context.now.milliseconds
        let context = step.context
        var counter = 0
        var isOld = false
        var taken: [MPID] = []
        while let person = model.person(context.newMPID(counter)) {
            isOld = isOld || person.isErased
            taken.append(person.mpid)
            counter += 1
        }
        let newMPID = context.newMPID(counter)
        model.sender(
            isService: context.principal.kind == .service,
            vouches: context.principal.scopes.contains(.identityVouch),
            isAdmin: context.principal.scopes.contains(.admin), isOld: isOld,
            at: context.moment.milliseconds)
        let before = model
        defer {
            model.dropMarks(since: before)
            model.growUp(since: before)
            model.tellFreezes(since: before, now: now)
            model.turnOthers(since: before, now: now)
        }
        do throws(NaiveSyncModel.Refusal) {
            switch step.command {
            case .move(let operation, let request):
                return .sync(try model.move(operation, request, newMPID: newMPID, now: now))
            case .search(let request): return .sync(try model.search(request, now: now))
            case .modify(let command): return .sync(try model.modify(command, now: now))
            case .alias(let command):
                let time = try model.alias(command, id: context.newAliasID, now: now)
                return .alias(
                    AliasResult(
                        aliasId: context.newAliasID, isScheduled: time != nil,
                        appliesAt: time.map { Timestamp(milliseconds: $0) }))
            case .detach(let command):
                return .detached(try model.detach(command, taken: taken, newMPID: newMPID, now: now))
            case .allow(let command): return .allowed(try model.allow(command))
            case .restrict(let command): return .restricted(try model.restrict(command))
            case .importProfiles(let list): return .imported(try model.bring(list, now: now))
            case .applyAlias(let command):
                model.apply(command.aliasId)
                return .noted
            case .linked(let event):
                model.linked(event, first: context.newMPID(0), newMPID: newMPID, now: now)
                return .noted
            case .renamed(let event):
                model.renamed(event, first: context.newMPID(0), newMPID: newMPID, now: now)
                return .noted
            case .unlinked(let event):
                model.unlinked(event)
                return .noted
            case .erase(let command):
                return try model.erase(command, newMPID: newMPID, context).map { .certificate($0) } ?? .pending
            case .forget(let command):
                model.forget(command, newMPID: newMPID, context)
                return .pending
            case .keepErased(let command):
                return model.keepErased(command, newMPID: newMPID, context) ? .pending : .noted
            case .getErasure(let query):
                guard let gone = model.certificates[query.mpid] else { return .rejected(.notFoundError) }
                return .certificate(gone)
            case .getProfile(let query): return .profile(try model.look(for: query))
            case .facts, .fileRequest, .getRequest, .getRequests, .cancelRequest, .getRequestResults, .processRequest:
                return .noted
            case .expireProfile(let command):
                model.expire(command, context)
                return .noted
            case .expireDevice(let command):
                model.expire(command, context)
                return .noted
            case .getUsers(let command): return .users(try model.users(command.deviceId))
            case .answered(let answer):
                model.take(answer, newMPID: newMPID, context)
                return .noted
            }
        } catch {
            return .rejected(error.reason)
        }
    }

    /// What is asked of others and what is answered later.
    private func compare(
        _ decision: SyncDecider.Decision, _ model: NaiveSyncModel, _ context: DecisionContext, _ trace: Comment
    ) throws {
        try #require(decision.forwards.map { AnyHashable($0.command) } == model.deeds.asked, trace)
        // Each has an id of its own, and the same when it is asked again; and an erasure is never too late.
        try #require(
            decision.forwards.map(\.id) == model.deeds.asked.indices.map { context.forwardID($0) }
                && decision.forwards.allSatisfy { $0.expiry == nil }, trace)
        let settled = decision.settlements.map {
            NaiveSyncModel.Settled(command: $0.command, answer: Answer($0.outcome))
        }
        try #require(settled == model.deeds.settled, trace)
    }

    /// What the service tells itself is what the model remembers.
    private func remember(
        _ decision: SyncDecider.Decision, _ model: inout NaiveSyncModel, _ context: DecisionContext, _ trace: Comment
    ) throws {
        let all = decision.due.compactMap { $0.command as? KeepErased }
        try #require(all.count == decision.due.count, trace)
        try #require(all.compactMap(\.userIds) == [model.deeds.toldUsers].filter { !$0.isEmpty }, trace)
        let kept = all.filter { $0.whom != nil }
        let told = kept.flatMap { $0.traces(context) ?? [] }
        try #require(kept.count == (model.deeds.told.isEmpty ? 0 : 1), trace)
        try #require(told.map { Set($0.devices) } == model.deeds.told.map(\.devices), trace)
        try #require(
            told.map { Set($0.logins.map(\.exact)) }
                == model.deeds.told.map { Set($0.names.map { TextDigest(of: $0.value.text) }) }, trace)
        for command in kept { model.memories[command] = model.deeds.told }
    }

    private func compare(_ state: SyncState, _ model: NaiveSyncModel, _ trace: Comment) throws {
        let people = state.profiles.values.map { profile in
            NaiveSyncModel.Person(
                mpid: profile.mpid, ids: profile.identities, first: profile.firstSeen, last: profile.lastSeen,
                isOrphan: profile.isOrphaned, isErased: profile.isErased, name: profile.name,
                user: profile.mark?.userID, customer: profile.mark?.externalID,
                linked: profile.mark?.linkedAt, own: profile.mark?.ownMPID,
                named: Dictionary(uniqueKeysWithValues: zip(profile.identities, profile.namedAt)),
                past: profile.former.map { .init(name: $0.externalID.text, from: $0.since, to: $0.until) },
                since: profile.aliasedSince,
                windows: profile.aliasWindows.map { [$0.lowerBound, $0.upperBound] }, sources: profile.aliasSources,
                isFrozen: profile.isRestricted, toldFrozen: profile.restrictionToldAt)
        }
        try #require(
            people.sorted { $0.mpid < $1.mpid } == model.people.sorted { $0.mpid < $1.mpid }, trace)
        for profile in state.profiles.values {
            let fences = profile.barriers.map { NaiveSyncModel.Fence(id: $0.identity, mpid: $0.mpid, other: $0.other) }
            let expected = model.fences.filter { [$0.mpid, $0.other].contains(profile.mpid) }
            try #require(fences == expected, trace)
        }
        let devices = state.devices.rows.reduce(into: [DeviceID: NaiveSyncModel.Device]()) { devices, entry in
            devices[entry.key.id] = NaiveSyncModel.Device(
                current: entry.value.current, anonymous: entry.value.anonymous,
                users: entry.value.users.map { .init(mpid: $0.mpid, first: $0.firstSeen, last: $0.lastSeen) },
                own: entry.value.identities.sorted { $0.type.rawValue < $1.type.rawValue },
                moved: entry.value.lastMove)
        }
        // A modify or a search that names a device writes its row, though nothing is known about it.
        try #require(devices.filter { !$0.value.isNobodys } == model.devices, trace)
        try #require(
            Dictionary(
                uniqueKeysWithValues: state.aliases.rows.map {
                    ($0.key.id, [$0.value.source, $0.value.destination])
                })
                == model.aliases, trace)
        let erasures = state.erasures.values.map { erasure in
            (
                erasure.command,
                NaiveSyncModel.Erasing(
                    gone: Gone(erasure.certificate), end: erasure.certificate.erasedAt.milliseconds,
                    open: Set(erasure.waiting),
                    hasFailed: erasure.hasFailed,
                    persons: Dictionary(
                        uniqueKeysWithValues: erasure.persons.map { (CommandID($0.key), AnyHashable($0.value)) }),
                    also: erasure.also)
            )
        }
        try #require(Dictionary(uniqueKeysWithValues: erasures) == model.erasing, trace)
        // The rows of the values say the same as the profiles.
        for entry in state.identities.values {
            let value = Identity(entry.key.id.type, entry.key.id.value)
            let holders = model.people.filter { person in person.ids.contains { model.folded($0) == value } }
            try #require(Set(entry.holders) == Set(holders.map(\.mpid)), trace)
            try #require(Set(entry.holders).count == entry.holders.count, trace)
            try #require(!entry.holders.isEmpty || entry == IdentityEntry(key: entry.key), trace)
            try #require(entry.holders.isEmpty || entry.isTold == model.common.contains(value), trace)
        }
    }

    /// The invariants of the issue.
    private func invariants(
        _ state: SyncState, _ model: NaiveSyncModel, _ answer: Answer, _ step: RandomCommands.Step,
        _ before: SyncState, _ given: inout Set<MPID>, _ trace: Comment
    ) throws {
        let settings = model.settings
        for entry in state.identities.values where settings.uniqueIdentities.contains(entry.key.id.type) {
            try #require(entry.holders.count <= 1, trace)
            if case .modify = step.command { continue }
            if case .renamed = step.command { continue }
            if case .detach = step.command { continue }
            if step.command.isErasure { continue }
            // Only modify, and support, move a unique value.
            if let owner = before.identities[entry.key]?.holders.first, let now = entry.holders.first {
                try #require(owner == now, trace)
            }
        }
        // The command that made one that is gone may come again when the inbox has forgotten it (S205).
        given.formIntersection(state.profiles.values.map(\.mpid))
        let created = state.profiles.keys.filter { before.profiles[$0] == nil }
        for profile in created { try #require(given.insert(profile.id).inserted, trace) }
        // An erasure makes one for each who came later.
        try #require(created.count <= 1 || step.command.isErasure || step.command.isList, trace)
        if case .erase(let command) = step.command, case .pending = answer, command.everyHolder != true {
            try onlyWhoIsFoundIsErased(command, state, model, step.context, before, trace)
        }
        guard case .sync(let result) = answer, let profile = state.profile("demo", result.mpid) else { return }
        try #require(!profile.isOrphaned || step.command.mpids.contains(result.mpid), trace)
        if case .move(let operation, let request) = step.command {
            try #require(before.profile("demo", result.mpid)?.isOrphaned != true, trace)
            try #require(state.device("demo", request.deviceId).current == result.mpid, trace)
            // A known profile is never returned without a matching login identity.
            if let was = before.profile("demo", result.mpid), was.isKnown(settings), result.rule != .kept {
                try #require(
                    request.identities.contains {
                        settings.loginIdentities.contains($0.type) && was.holds($0, settings)
                    }, trace)
                try #require(operation != .logout || settings.strategy == .bestMatch, trace)
            }
        }
    }
}
