import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAsStated, postgresFault } from './postgres-chaos.js'
import { POSTGRES_FAULTS } from './postgres-faults.js'

for (const fault of POSTGRES_FAULTS) {
  test(`PostgreSQL, ${fault.name}: no error reaches a caller, no more passes than is stated, and nothing is charged twice or lost`, async (t) => {
    const report = await postgresFault(fault, 1, () => undefined)
    t.diagnostic(JSON.stringify(report))
    assert.ok(isAsStated(report), JSON.stringify(report))
    for (const { name, takes, admitted, surelyOver } of report.subjects) {
      assert.ok(admitted > 0 && takes > 1.05 * admitted, `${name}: who asks for no more than the rate sees nothing of the bound`)
      if (!fault.forgets) assert.equal(surelyOver, 0, name)
    }
  })
}
