import assert from 'node:assert/strict'
import { ConfigError } from 'sluicegate-config/fault.js'
import { parseConfig } from 'sluicegate-config/read-config.js'

/** Each fault of `yaml`, as it is printed for a file named gate.yaml. */
export function faultsOf(yaml: string): string[] {
  try {
    parseConfig(yaml, 'gate.yaml')
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n')
  }
  return assert.fail('the file was accepted')
}

/** A file of one policy with these options, which begin in column 10 of line 2. */
export function onePolicy(options: string): string {
  return `policies:\n  api: { ${options} }\n`
}
