// SPDX-License-Identifier: Apache-2.0

package import Apps
package import Runtime

extension DeploymentTopics {
    /// Of a deployment that runs all services there are.
    package init(_ plan: TopicPlan, apps: AppDirectory = AppDirectory([])) {
        self.init(plan, services: services.map { Self.traffic($0) }, apps: apps)
    }

    private static func traffic<Service: CommandService>(_ service: Service.Type) -> ServiceTraffic {
        ServiceTraffic(service)
    }
}
