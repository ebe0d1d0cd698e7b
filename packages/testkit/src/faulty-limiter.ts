import { createLimiter } from 'sluicegate'
import { ALGORITHMS } from './conformance/algorithms.js'
import type { MakeLimiter } from './conformance/fixture.js'
import { conformance } from './conformance.js'
import type { Fault } from './faults/fault.js'
import { PERMIT_FAULTS } from './faults/permit-faults.js'
import { RATE_FAULTS } from './faults/rate-faults.js'
import { WINDOW_FAULTS } from './faults/window-faults.js'

// A program: runs the conformance suite over a limiter with the fault that the first argument names. It must fail.

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

function faulty({ spoil }: Fault): MakeLimiter {
  return (policy, options) => {
    const limiter = createLimiter(policy, options)
    const { clock } = options
    const wrong = spoil(limiter, { clock, make: (other, otherClock = clock) => createLimiter(other, { ...options, clock: otherClock }) })
    return new Proxy(limiter, {
      get(target, name) {
        const value = Reflect.get(name in wrong ? wrong : target, name, name in wrong ? wrong : target) as unknown
        return typeof value === 'function' ? value.bind(name in wrong ? wrong : target) : value
      },
    })
  }
}

const [, , name] = process.argv
if (name === undefined) console.log(JSON.stringify(Object.keys(FAULTS)))
else {
  const fault = FAULTS[name]
  if (fault === undefined) throw new RangeError(`no fault "${name}"`)
  // The suite itself, in full, is the test of each form of limiter.
  const share = name.startsWith('none, ') ? 0.02 : 0.2
  conformance('faulty', faulty(fault), { algorithms: [fault.algorithm], shared: fault.parts, share })
}
