import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SERVICE_PROOFS } from './service-proofs.js'

// The service as its own process under load, reloads, stops, kills and hostile clients: `prove-service [--of NAME,...] [--scale 1]`.
// Prints a line of JSON for each; the exit code is 1 where one does not hold. A scale below 1 runs less of each.

const { values } = parseArgs({
  options: { of: { type: 'string', default: Object.keys(SERVICE_PROOFS).join(',') }, scale: { type: 'string', default: '1' } },
})
for (const name of values.of.split(',')) {
  const prove = SERVICE_PROOFS[name]
  if (prove === undefined) throw new Error(`there is no proof "${name}"; there are ${Object.keys(SERVICE_PROOFS).join(', ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  const ends: (() => unknown)[] = []
  const startMs = performance.now()
  const verdict = await prove({ folder, scale: Number(values.scale), after: (end) => ends.push(end) }).catch((error: unknown) => ({
    holds: false,
    error: String(error),
  }))
  for (const end of ends.reverse()) await end()
  rmSync(folder, { recursive: true })
  if (!verdict.holds) process.exitCode = 1
  console.log(JSON.stringify({ proof: name, ...verdict, seconds: Math.round((performance.now() - startMs) / 1_000) }))
}
