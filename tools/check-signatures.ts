import { spawnSync } from 'node:child_process'

const WRONG = /^\d+ packages? (?:has|have) (?:an )?(?:invalid|missing) (?:registry signatures?|attestations?)/m

/**
 * Packages whose contents are not what their registry signed. Only in continuous integration: it asks for each package. A registry that has no
 * signatures has no faults either, and a line says so.
 */
export function checkSignatures(): string[] {
  if (process.env.CI === undefined) return []
  const { status, stdout, stderr } = spawnSync('npm', ['audit', 'signatures', '--fetch-retries=0', '--fetch-timeout=20000'], {
    encoding: 'utf8',
  })
  return signatureFaults(status, stdout + stderr)
}

/** The rule itself, for what `npm audit signatures` printed. */
export function signatureFaults(status: number | null, printed: string): string[] {
  if (WRONG.test(printed)) return [printed.trim()]
  if (status !== 0) console.log('         signatures were not checked: this registry has no keys for them, or cannot be reached')
  return []
}
