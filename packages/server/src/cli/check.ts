import type { Config } from 'sluicegate-config/config.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { readConfig } from 'sluicegate-config/read-config.js'

/** Prints every fault of a configuration, and returns the exit code: 0 without faults, 1 with some. */
export function check(path: string, json: boolean): number {
  try {
    const config = readConfig(path)
    console.log(
      json ? JSON.stringify({ path, faults: [], policies: config.policies.length, domains: config.domains.length }) : summary(path, config),
    )
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (json) console.log(JSON.stringify({ path, faults: error.faults }))
    else console.error(error.message)
    return 1
  }
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
