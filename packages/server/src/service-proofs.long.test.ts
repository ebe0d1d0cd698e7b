import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Verdict } from 'sluicegate-testkit/service/service-proofs.js'
import { SERVICE_PROOFS } from 'sluicegate-testkit/service/service-proofs.js'

/** A short run of a proof. What it started ends before its folder goes. */
async function proven(t: TestContext, name: string, scale: number): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  const ends: (() => unknown)[] = []
  t.after(async () => {
    for (const end of ends.reverse()) await end()
    rmSync(folder, { recursive: true })
  })
  const prove = SERVICE_PROOFS[name] ?? assert.fail(name)
  const verdict = await prove({ folder, scale, after: (end) => ends.push(end) })
  t.diagnostic(JSON.stringify(verdict))
  return verdict
}

for (const [name, scale] of [
  ['reloads', 0.02],
  ['stops', 0.06],
  ['kill', 0.2],
] as const)
  test(`a short run of the proof "${name}" of the service holds`, async (t) => {
    const verdict = await proven(t, name, scale)
    assert.ok(verdict.holds, JSON.stringify(verdict))
  })

// How long other clients wait depends on what else the machine does: the whole proof judges that, and this run the rest.
test('hostile clients fail no request of others, and the memory of the service stays bounded', async (t) => {
  const { error, peakRssMb } = await proven(t, 'hostile', 0.1)
  assert.equal(error, undefined)
  assert.ok(Number(peakRssMb) < 400, `${peakRssMb} MB`)
})
