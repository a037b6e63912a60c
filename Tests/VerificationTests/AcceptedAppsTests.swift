// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync
@testable import Verification

/// An app that cannot find whom it verifies is refused by the loader; every other one finds them.
@Suite struct AcceptedAppsTests {
    /// S77, S78, S105, S106, S107.
    @Test func everyAppIsRefusedOrWorks() throws {
        var refused = 0
        var modes: [String: Set<VerificationSettings.Mode>] = [:]
        for (shape, result) in AppShape.loaded {
            do {
                let app = try result.get()
                modes[shape.strategy.name, default: []].insert(shape.mode)
                try works(shape, app)
            } catch let problem as AppsFile.Problem {
                refused += 1
                try #require(problem.description.hasPrefix("app support, sync: "), "\(shape): \(problem)")
                try #require(!problem.description.contains("\n"))
            }
        }
        #expect(refused > 500 && AppShape.accepted.count > 500, "\(refused) and \(AppShape.accepted.count)")
        for strategy in SyncStrategy.all {
            #expect(modes[strategy.name]?.count == (strategy == .bestMatch ? 1 : 3), "\(strategy.name)")
        }
    }

    private func works(_ shape: AppShape, _ app: AppSettings) throws {
        for way in Way.all where way.isSigned(shape.fields) {
            let trace = Comment(rawValue: "\(shape): \(way)")
            var services = TwoServices(app)
            let first = try login("anna", way, on: "d1", shape, &services)
            let second = try login("anna", way, on: "d2", shape, &services)
            services.send(.logout(VerificationLogout(deviceId: "d1")))
            services.settle()
            try #require(try services.session("d1").state == .anonymous, trace)
            let again = try login("anna", way, on: "d1", shape, &services)
            let other = try login("berta", way, on: "d2", shape, &services)
            if shape.mode != .off, way.names(shape.fields) {
                try #require(first.state == .verified && other.state == .verified, trace)
            }
            // With nobody verified, an app may take a device for a person.
            if shape.mode == .off, shape.believesDevices { continue }
            let sessions = [second, again]
            if first.state == .anonymous {
                // V74.
                try #require(sessions.allSatisfy { $0.state == .anonymous }, trace)
                continue
            }
            try #require(first.mpid != nil && sessions.allSatisfy { $0.mpid == first.mpid }, trace)
            try #require(other.mpid != nil && other.mpid != first.mpid, trace)
        }
    }

    /// As an app does: it identifies at its start.
    private func login(
        _ person: String, _ way: Way, on device: DeviceID, _ shape: AppShape, _ services: inout TwoServices
    ) throws -> SessionResult {
        services.now += 1000
        services.send(
            .move(
                .identify, SyncRequest(deviceId: device, knownIdentities: ["device_application_stamp": device.text])),
            by: TwoServices.sdkKey)
        services.now += 1000
        services.send(way.login(person, on: device, shape.fields))
        services.settle()
        return try services.session(device)
    }
}
