// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Foundation
import Runtime
import Sync

@main
struct SyncMain {
    static func main() async {
        await ServiceMain.run(try SyncService(environment: ProcessInfo.processInfo.environment))
    }
}
