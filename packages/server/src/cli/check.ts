import type { Config } from 'sluicegate-config/config.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { readConfig } from 'sluicegate-config/read-config.js'
import { validityNote } from 'sluicegate-config/tls.js'

/** Prints every fault of a configuration, and returns the exit code: 0 without faults, 1 with some. Certificates that end are no fault. */
export function check(path: string, json: boolean): number {
  try {
    const config = readConfig(path)
    const warnings = warningsOf(config, Date.now())
    const { policies, domains } = config
    if (json) console.log(JSON.stringify({ path, faults: [], warnings, policies: policies.length, domains: domains.length }))
    else {
      for (const { file, reason } of warnings) console.error(`${file}: warning: ${reason}`)
      console.log(summary(path, config))
    }
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (json) console.log(JSON.stringify({ path, faults: error.faults }))
    else console.error(error.message)
    return 1
  }
}

function warningsOf({ tls }: Config, nowMs: number): { readonly file: string; readonly reason: string }[] {
  return (tls?.validities ?? []).flatMap((validity) => {
    const reason = validityNote(validity, nowMs)
    return reason === undefined ? [] : [{ file: validity.file, reason }]
  })
}

function summary(path: string, { policies, domains }: Config): string {
  const counts = [
    ...(policies.length > 0 || domains.length === 0 ? [counted(policies.length, 'policy', 'policies')] : []),
    ...(domains.length > 0 ? [counted(domains.length, 'domain', 'domains')] : []),
  ]
  return `${path}: good, ${counts.join(', ')}`
}

function counted(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`
}
