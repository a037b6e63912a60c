// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Runtime
import Sync

@main
struct SyncMain {
    static func main() async {
        await ServiceMain.run(SyncService())
    }
}
