import { parseArgs } from 'node:util'
import { seedsFrom } from '../saved-seeds.js'
import { SETTLED_ALGORITHMS, settledInMemory } from './settled-history.js'

// Late settlements against what passed net, see settled-history.ts: `prove-receipts [--operations 1000000] [--from 1]`, as many operations of each
// algorithm.

const { values } = parseArgs({ options: { from: { type: 'string', default: '1' }, operations: { type: 'string', default: '1000000' } } })
const [from, most] = [Number(values.from), Number(values.operations)]

for (const algorithm of SETTLED_ALGORITHMS) {
  let [operations, returned, histories, found] = [0, 0, 0, 0]
  for (const seed of seedsFrom(from, most)) {
    if (operations >= most) break
    const result = await settledInMemory(seed, algorithm, undefined, false)
    operations += result.operations
    returned += result.returned
    histories++
    if (result.excess === undefined) continue
    found++
    process.exitCode = 1
    console.log(`${algorithm}, seed ${seed}: ${result.excess}`)
  }
  console.log(`${algorithm}: ${histories} histories, ${operations} operations, ${returned} tokens came back, ${found} times too many`)
}
