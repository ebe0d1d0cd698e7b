import { writeFileSync } from 'node:fs'
import type { Policy } from 'sluicegate'
import { policyUnderLease } from '../../../packages/sluicegate/dist/cluster/memory-lease.js'
import { isOver, simulateExact, simulateLeased } from './simulated-use.js'
import { ARRIVALS, arrivalsOf, POLICIES, policyOf, type UseCell } from './use-cell.js'
import { figuresOf, secondsOf } from './use-figures.js'

const get = (name: string, all: string): string[] => {
  const at = process.argv.indexOf(`--${name}`)
  return ((at < 0 ? all : process.argv[at + 1]) as string).split(',')
}
const lessBurst = (p: Policy): Policy => policyUnderLease(p, 100_000)
const rows: unknown[] = []
const target = (c: UseCell, r: any): string => {
  const bad: string[] = []
  const admit = c.demand <= 0.9 ? 0.99 : 0.97
  if (r.share < admit) bad.push('ADMIT')
  if (r.callsPerRequest > 1.05) bad.push('CALLS')
  if (c.requestsPerLease >= 10 && r.callsPerRequest > 0.3) bad.push('CALLS.3')
  if (c.requestsPerLease >= 50 && r.callsPerRequest > 0.05) bad.push('CALLS.05')
  if (c.demand > 1 && r.callsPerToken > 2) bad.push('PERTOKEN')
  if (r.over) bad.push('OVER')
  if (r.jain < 0.95 && r.jain < r.jainExact - 0.01) bad.push('JAIN')
  if (r.starvedS > Math.max(1, r.starvedExactS)) bad.push('STARVE')
  return bad.join(' ')
}
for (const policy of get('policy', POLICIES.join())) {
  for (const arrivals of get('arrivals', ARRIVALS.join())) {
    for (const nodes of get('nodes', '2,4,16,64').map(Number)) {
      for (const requestsPerLease of get('m', '0.05,0.1,0.2,0.5,1,2,5,10,20,50,100').map(Number)) {
        for (const demand of get('d', '0.5,0.9,1,1.5,2,10').map(Number)) {
          const burst = get('burst', '1').map(Number)[0] as number
          const cell = { policy, arrivals, nodes, requestsPerLease, demand, burstS: burst } as UseCell
          const made = policyOf(cell)
          if (made === undefined) continue
          const seconds = secondsOf(cell, Number(get('requests', '20000')[0]))
          const network = { roundTripUs: 300 }
          const all = arrivalsOf(cell, seconds, 1)
          const startMs = performance.now()
          const exact = simulateExact(made, all, network)
          const less = simulateExact(lessBurst(made), all, network)
          const exactMs = performance.now()
          const leased = await simulateLeased(cell, made, all, network)
          const ms = [exactMs - startMs, performance.now() - exactMs]
          const r = {
            ...figuresOf(cell, seconds, exact, leased),
            waste: 1 - leased.decided.filter((x) => x.allowed).length / (leased.charged / (made.policies?.length ?? 1)),
            less: figuresOf(cell, seconds, exact, less).share,
            over: isOver(made, leased.decided),
          }
          rows.push({ ...cell, ...r })
          console.log(
            policy.padEnd(14),
            arrivals.padEnd(7),
            `K${nodes}`.padEnd(4),
            `m${requestsPerLease}`.padEnd(6),
            `d${demand}`.padEnd(5),
            `adm ${(100 * r.share).toFixed(1)}`.padEnd(10),
            `less ${(100 * r.less).toFixed(1)}`.padEnd(11),
            `exact ${(100 * r.exactShare).toFixed(1)}`.padEnd(12),
            `waste ${(100 * r.waste).toFixed(1)}`,
            `c/r ${r.callsPerRequest.toFixed(3)}`,
            `c/t ${r.callsPerToken.toFixed(2)}`.padEnd(9),
            `p99 ${r.p99Ms.toFixed(2)}`,
            `jain ${r.jain.toFixed(2)}/${r.jainExact.toFixed(2)} starve ${r.starvedS.toFixed(1)}/${r.starvedExactS.toFixed(1)}`,
            ms.map((x) => Math.round(x)).join('+'),
            target(cell, r),
          )
        }
      }
    }
  }
}
const out = process.argv.indexOf('--out')
if (out > 0) writeFileSync(process.argv[out + 1] as string, JSON.stringify(rows))
