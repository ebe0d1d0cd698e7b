import type { EnvoyDomain } from 'sluicegate-config/envoy/envoy-domain.js'
import { parseConfig } from 'sluicegate-config/read-config.js'

/** The domain of a file in the form of Envoy's rate limit service. */
export function envoyDomains(yaml: string): readonly EnvoyDomain[] {
  return parseConfig(yaml, 'rl.yaml').domains
}
