import { describe } from 'node:test'
import { createLimiter } from 'sluicegate'
import { ALGORITHMS } from './conformance/algorithms.js'
import type { MakeLimiter } from './conformance/fixture.js'
import { conformance } from './conformance.js'
import type { Fault } from './faults/fault.js'
import { PERMIT_FAULTS } from './faults/permit-faults.js'
import { RATE_FAULTS } from './faults/rate-faults.js'
import { WINDOW_FAULTS } from './faults/window-faults.js'

// A program: runs the conformance suite over a limiter with each of the faults that the arguments name, as a suite of its name. It must fail.

const FAULTS: Readonly<Record<string, Fault>> = { ...withoutFault(), ...RATE_FAULTS, ...WINDOW_FAULTS, ...PERMIT_FAULTS }

/** For each algorithm none, with what is run for any of its faults. */
function withoutFault(): Record<string, Fault> {
  const faults = [RATE_FAULTS, WINDOW_FAULTS, PERMIT_FAULTS].flatMap((some) => Object.values(some))
  const none = ALGORITHMS.map(({ name: algorithm }): [string, Fault] => {
    const parts = faults.filter((fault) => fault.algorithm === algorithm).flatMap((fault) => fault.parts)
    return [`none, ${algorithm}`, { algorithm, parts: [...new Set(parts)], spoil: () => ({}) }]
  })
  return Object.fromEntries(none.filter(([, { algorithm }]) => algorithm !== 'gcra'))
}

/** Faults whose further tests end at once. */
const noticed = new Set<unknown>()
process.on('message', (name) => noticed.add(name))
process.channel?.unref()

function faulty(name: string, { spoil }: Fault): MakeLimiter {
  return (policy, options) => {
    if (noticed.has(name)) throw new Error('a test of this fault has failed')
    const limiter = createLimiter(policy, options)
    const { clock } = options
    const wrong = spoil(limiter, { clock, make: (other, otherClock = clock) => createLimiter(other, { ...options, clock: otherClock }) })
    return new Proxy(limiter, {
      get(target, member) {
        const owner = member in wrong ? wrong : target
        const value = Reflect.get(owner, member, owner) as unknown
        return typeof value === 'function' ? value.bind(owner) : value
      },
    })
  }
}

const [, , ...names] = process.argv
if (names.length === 0) console.log(JSON.stringify(Object.keys(FAULTS)))
for (const name of names) {
  const fault = FAULTS[name]
  if (fault === undefined) throw new RangeError(`no fault "${name}"`)
  describe(name, () => conformance('faulty', faulty(name, fault), { algorithms: [fault.algorithm], shared: fault.parts }))
}
