// SPDX-License-Identifier: Apache-2.0

// What record.sh found when this was built, as CBuild.h declares it. Nothing imports this module; executables link it.

@_cdecl("identitybus_commit")
public func commit() -> UnsafePointer<CChar> { text(RecordedCommit.id) }

@_cdecl("identitybus_commit_day")
public func commitDay() -> UnsafePointer<CChar> { text(RecordedCommit.day) }

@_cdecl("identitybus_is_modified")
public func isModified() -> CInt { RecordedCommit.isModified ? 1 : 0 }

/// A static text ends with a zero.
private func text(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}
