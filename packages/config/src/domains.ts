import type { Config } from './config.js'
import type { EnvoyDomain } from './envoy/envoy-domain.js'
import { EnvoyFiles } from './envoy/envoy-files.js'
import type { PolicyConfig } from './policy-config.js'
import type { Section } from './section.js'

/** Whether a file is in the form of Envoy's rate limit service, by its content. */
export function isDomain(root: Section): boolean {
  const names = root.names()
  return !names.includes('policies') && (names.includes('domain') || names.includes('descriptors'))
}

/**
 * Reads files in the form of Envoy's rate limit service, whose limits become policies.
 *
 * @param names names of policies in other files.
 */
export function readDomains(roots: readonly Section[], names: Iterable<string>): EnvoyDomain[] {
  const files = new EnvoyFiles(new Set(names), /^(1|t|true)$/i.test(process.env.MERGE_DOMAIN_CONFIG ?? ''))
  for (const root of roots) files.read(root)
  return files.domains
}

/** The policies of all files, in both forms. */
export function allPolicies({ policies, domains }: Pick<Config, 'policies' | 'domains'>): PolicyConfig[] {
  return [...policies, ...domains.flatMap((domain) => domain.policies)]
}
