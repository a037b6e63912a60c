// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

/// The vendor's worked examples, as stories.
@Suite struct WorkedTablesTests {
    // MARK: Which identity counts

    @Test(
        arguments: [
            ([.customerID, .email, .other, .iosIDFV, .androidAAID], "email=E other=AAAA ios_idfv=2345 -> 1"),
            ([.customerID, .email, .iosIDFV, .androidAAID], "email=E android_aaid=2345 -> 2"),
        ] as [([IdentityType], String)])
    func priority(_ priority: [IdentityType], _ request: String) throws {
        let world = World(SyncSettings(strategy: .conversion, priority: priority, unique: [], immutable: []))
        _ = try world.given(1, [Identity(.email, "E"), Identity(.iosIDFV, "1234"), Identity(.other, "AAAA")])
        _ = try world.given(2, [Identity(.email, "E"), Identity(.androidAAID, "2345"), Identity(.other, "BBBB")])
        world.story("identify d1 \(request)")
    }

    private func hydeAndJekyll(_ settings: SyncSettings) throws -> World {
        let world = World(settings)
        _ = try world.given(
            1234, [Identity(.customerID, "h.jekyll.85"), Identity(.email, "ed.hyde"), Identity(.iosIDFV, "1234")])
        _ = try world.given(5678, [Identity(.email, "h.jekyll.md")])
        return world
    }

    @Test(
        arguments: [
            ([.email, .customerID], "identify d1 email=ed.hyde -> 1234 known matched"),
            ([.email], "identify d1 email=h.jekyll.md ios_idfv=5678 -> 5678 known matched"),
            ([.email], "identify d1 ios_idfv=1234 -> A anonymous created\nprofile A -> ios_idfv=1234"),
        ] as [(Set<IdentityType>, String)])
    func loginIdentities(_ login: Set<IdentityType>, _ story: String) throws {
        let world = try hydeAndJekyll(
            SyncSettings(
                strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: login,
                unique: [.customerID, .email], immutable: []))
        world.story(story)
    }

    @Test func immutableIdentities() throws {
        let world = try hydeAndJekyll(
            SyncSettings(
                strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: [.customerID, .email],
                unique: [.customerID, .email], immutable: [.customerID]))
        world.story(
            """
            search d1 customerid=h.jekyll.85 -> 1234
            search d1 email=h.jekyll.md      -> NOT_FOUND_ERROR
            search d1 customerid=9101        -> NOT_FOUND_ERROR
            """)
        world.settings.searchByAnyIdentity = true
        world.story("search d1 email=h.jekyll.md -> 5678")
        #expect(world.state.profiles.count == 2, "nothing is created")
    }

    @Test(
        arguments: [
            (
                [.customerID, .email],
                """
                modify 1234 email ed.hyde h.jekyll.md -> 1234 known named changed 1234 5678
                profile 1234                          -> customerid=h.jekyll.85 email=h.jekyll.md ios_idfv=1234
                profile 5678                          -> orphaned
                """
            ),
            (
                [.customerID],
                """
                modify 1234 email ed.hyde h.jekyll.md -> 1234 known named changed 1234
                profile 1234                          -> customerid=h.jekyll.85 email=h.jekyll.md ios_idfv=1234
                profile 5678                          -> email=h.jekyll.md
                """
            ),
        ] as [(Set<IdentityType>, String)])
    func uniqueIdentities(_ unique: Set<IdentityType>, _ story: String) throws {
        let world = try hydeAndJekyll(
            SyncSettings(
                strategy: .conversion, priority: [.customerID, .email, .iosIDFV], login: [.customerID, .email],
                unique: unique, immutable: []))
        world.story(story)
    }

    // MARK: The strategies

    @Test func conversion() {
        World(.worked(.conversion)).story(
            """
            identify d1 ios_idfv=9876                                    -> A anonymous created
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> A known converted
            profile A                                                    -> customerid=ABC123 email=ed.hyde ios_idfv=9876
            logout d1 ios_idfv=9876                                      -> B anonymous created-for-logout
            profile B                                                    -> ios_idfv=9876
            identify feed email=h.jekyll.md                              -> C known created
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> A known matched
            modify A email ed.hyde h.jekyll.md                           -> A known named changed A C
            profile C                                                    -> orphaned
            identify roku roku_aid=8765                                  -> D anonymous created
            login roku customerid=ABC123 email=h.jekyll.md roku_aid=8765 -> A known matched
            profile A -> customerid=ABC123 email=h.jekyll.md ios_idfv=9876 roku_aid=8765
            """)
    }

    @Test func link() {
        World(.worked(.link)).story(
            """
            identify d1 ios_idfv=9876                                    -> A anonymous created
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> B known created-for-login
            profile B                                                    -> customerid=ABC123 email=ed.hyde ios_idfv=9876
            logout d1 ios_idfv=9876                                      -> C anonymous created-for-logout
            profile C                                                    -> ios_idfv=9876
            identify feed email=h.jekyll.md                              -> D known
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> B known matched
            modify B email ed.hyde h.jekyll.md                           -> B known named changed B D
            profile D                                                    -> orphaned
            identify roku roku_aid=8765                                  -> E anonymous created
            login roku customerid=ABC123 email=h.jekyll.md roku_aid=8765 -> B known matched
            profile B -> customerid=ABC123 email=h.jekyll.md ios_idfv=9876 roku_aid=8765
            """)
    }

    @Test func isolation() {
        World(.worked(.isolation)).story(
            """
            identify d1 ios_idfv=9876                                    -> A anonymous created
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> B known created-for-login
            profile B                                                    -> customerid=ABC123 email=ed.hyde ios_idfv=9876
            logout d1 ios_idfv=9876                                      -> A anonymous returned-to-anonymous
            profile A                                                    -> ios_idfv=9876
            identify feed email=h.jekyll.md                              -> C known
            login d1 customerid=ABC123 email=ed.hyde ios_idfv=9876       -> B known matched
            modify B email ed.hyde h.jekyll.md                           -> B known named changed B C
            profile C                                                    -> orphaned
            identify roku roku_aid=8765                                  -> D anonymous created
            login roku customerid=ABC123 email=h.jekyll.md roku_aid=8765 -> B known matched
            profile B -> customerid=ABC123 email=h.jekyll.md ios_idfv=9876 roku_aid=8765
            """)
    }

    @Test func bestMatch() {
        let world = World(.worked(.bestMatch))
        world.story(
            """
            identify d1 ios_idfv=9876                 -> A anonymous
            identify d1 email=ed.hyde ios_idfv=9876   -> A anonymous
            profile A                                 -> email=ed.hyde ios_idfv=9876
            modify A email ed.hyde h.jekyll.md        -> A anonymous
            profile A                                 -> email=h.jekyll.md ios_idfv=9876
            identify d1 email=poole ios_idfv=9876     -> A anonymous
            profile A                                 -> email=h.jekyll.md email=poole ios_idfv=9876
            identify d2 android_uuid=8765             -> B anonymous
            identify d2 android_uuid=8765 email=poole -> A anonymous
            profile A                                 -> android_uuid=8765 email=h.jekyll.md email=poole ios_idfv=9876
            login d1 ios_idfv=9876                    -> A anonymous
            logout d1 ios_idfv=9876                   -> A anonymous
            """)
        #expect(world.state.profiles.values.allSatisfy { !$0.isKnown(world.settings) })
    }

    /// Conversion with fixed settings (S22).
    @Test func defaultStrategy() {
        World(SyncSettings()).story(
            """
            identify d1 device_application_stamp=das                     -> A anonymous
            login d1 customerid=c email=e device_application_stamp=das   -> A known
            logout d1 device_application_stamp=das                       -> B anonymous
            login d1 customerid=c email=e device_application_stamp=das   -> A known
            identify d2 email=e2                                         -> C anonymous
            modify A customerid c c2                                     -> VALIDATION_ERROR
            """)
    }
}
