// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from Package.swift.

import Link
package import Runtime
import Sync
import User
import Verification

/// The services with a store of their own. What `up` starts, `send` can write and `explain` reads follows from this
/// list, and so do the tests that are about all services.
package let services: [any CommandService.Type] = [
    LinkService.self,
    UserService.self,
    SyncService.self,
    VerificationService.self,
]

package let serviceNames = services.map { $0.name }
