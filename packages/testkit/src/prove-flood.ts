import { flood } from './flood.js'

// Twenty million distinct keys through a table of 100,000: memory stays flat, and an abuser stays limited to the token.

const DISTINCT_KEYS = 20_000_000
const MAX_KEYS = 100_000
const MOST_RSS_GROWTH_BYTES = 32 * 2 ** 20
const MEBIBYTE = 2 ** 20

const startMs = performance.now()
const result = flood({
  distinctKeys: DISTINCT_KEYS,
  maxKeys: MAX_KEYS,
  onProgress: (done, rssBytes) =>
    console.log(`${done / 1e6} million keys, ${secondsSince(startMs)} s, process ${(rssBytes / MEBIBYTE).toFixed(1)} MiB`),
})
const { stats, abuserPassed, abuserBudget, newcomersPassed, memoryGrewBytes, rssGrewBytes, excess } = result
console.log(`newcomers passed ${newcomersPassed}; forgotten in debt ${stats.evictions}; denied for want of room ${stats.refusals}`)
console.log(
  `table ${(stats.memoryBytes / MEBIBYTE).toFixed(2)} MiB, grew ${memoryGrewBytes}; process grew ${(rssGrewBytes / MEBIBYTE).toFixed(1)} MiB since the table was full`,
)
console.log(
  `abuser passed ${abuserPassed} of a budget of ${abuserBudget}; an interval above the budget: ${excess === undefined ? 'none' : JSON.stringify(excess)}`,
)
if (excess !== undefined || abuserPassed !== abuserBudget || memoryGrewBytes !== 0 || rssGrewBytes > MOST_RSS_GROWTH_BYTES)
  process.exitCode = 1

function secondsSince(ms: number): number {
  return Math.round((performance.now() - ms) / 1000)
}
