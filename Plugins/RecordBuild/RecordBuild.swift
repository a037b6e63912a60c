// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// Has the commit that is built written into a source file before each build. The file changes with the commit only.
@main
struct RecordBuild: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let output = context.pluginWorkDirectoryURL.appending(path: "record")
        return [
            .prebuildCommand(
                displayName: "Commit of the build", executable: URL(filePath: "/bin/sh"),
                arguments: [
                    target.directoryURL.appending(path: "record.sh").path, context.package.directoryURL.path,
                    output.path,
                ], outputFilesDirectory: output)
        ]
    }
}
