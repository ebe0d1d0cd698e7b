import type { Section } from './section.js'

/** A file in the form of Envoy's rate limit service. */
export interface Domain {
  readonly domain: string
}

/** Whether a file is in the form of Envoy's rate limit service, by its content. */
export function isDomain(root: Section): boolean {
  const names = root.names()
  return !names.includes('policies') && (names.includes('domain') || names.includes('descriptors'))
}

/** Reads files in the form of Envoy's rate limit service, whose descriptors become policies. */
export function readDomains(roots: readonly Section[]): Domain[] {
  for (const root of roots) root.fault(root.names()[0] ?? '', 'is in the form of Envoy; only files with policies: are read')
  return []
}
