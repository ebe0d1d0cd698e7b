import type { Call } from './call.js'
import { scenario } from './scenario.js'

const A = 0
const B = 1
const C = 2
const take = (key: number, nowUs: number, amount = 1): Call => ({ verb: 'take', key, nowUs, amount })

export const SCENARIOS = [
  scenario({
    name: 'three takes of a key that is there',
    homes: [0],
    before: [take(A, 10_000)],
    threads: [[take(A, 10_000)], [take(A, 10_000)], [take(A, 10_000)]],
  }),
  scenario({
    name: 'three first takes of a key',
    lines: 3,
    homes: [0],
    threads: [[take(A, 10_000)], [take(A, 10_000)], [take(A, 10_000, 2)]],
  }),
  scenario({
    name: 'a take, and two newcomers that need its idle entry',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, 1_000), take(C, 1000)],
    threads: [[take(A, 10_000)], [take(B, 10_000)], [take(A, 10_000)]],
  }),
]
