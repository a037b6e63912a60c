// SPDX-License-Identifier: Apache-2.0

import Foundation
import Runtime
import Sync

@main
struct SyncMain {
    static func main() {
        ServiceMain.run(try SyncService(environment: ProcessInfo.processInfo.environment))
    }
}
