import { parseArgs } from 'node:util'
import { seedsFrom } from '../saved-seeds.js'
import { firstLeaseExcess, LEASED_ENCODINGS, type LeaseRun } from './lease-history.js'
import { FAULTY, SOUND } from './lease-rules.js'

// Leases never let more pass than the policy, in random histories of a fleet: `prove-leases [--count 1000000] [--from 1]`, a quarter of
// them for each encoding. Then every broken rule has to be found out.

const MOST_FOR_A_FAULT = 50_000

const { values } = parseArgs({ options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '1000000' } } })
const from = Number(values.from)
const count = Math.ceil(Number(values.count) / LEASED_ENCODINGS.length)
const startMs = performance.now()

for (const encoding of LEASED_ENCODINGS) {
  const run = firstLeaseExcess(seedsFrom(from, count), SOUND, [encoding])
  console.log(`${encoding}: ${summaryOf(run)}, ${Math.round((performance.now() - startMs) / 1000)} s`)
  if (run.excess !== undefined) process.exitCode = 1
}
for (const rules of FAULTY) {
  for (const encoding of rules.encodings) {
    const run = firstLeaseExcess(seedsFrom(from, MOST_FOR_A_FAULT), rules, [encoding])
    console.log(`planted in ${encoding}, "${rules.name}": ${run.excess === undefined ? 'NOT FOUND' : `found in history ${run.histories}`}`)
    if (run.excess === undefined) process.exitCode = 1
  }
}

function summaryOf({ histories, admitted, charged, excess }: LeaseRun): string {
  const over = excess === undefined ? 'never over' : `OVER: ${JSON.stringify(excess)}`
  return `${histories} histories, ${admitted} of ${charged} tokens spent, ${over}`
}
