// Work whose cost is known afterwards: it spends as it goes, within the budget of a user and of a team.
import { createLimiter, fixedWindow, levels, manualClock, tokenBucket } from 'sluicegate'

const clock = manualClock()
const spend = createLimiter(
  levels({
    team: fixedWindow({ limit: 1_000, window: 'day' }),
    user: tokenBucket({ limit: 400, window: '1m' }),
  }),
  { clock },
)

async function answer(user, expect, pieces, usage) {
  const work = spend.open({ team: 'math', user }, { expect, most: 500, over: 'wait' })
  if (!work.allowed) return console.log(`${user}: 429 by ${work.policy}, retry after ${Math.ceil(work.retryAfterMs / 1000)} s`)
  for (const piece of pieces) if (!(await work.add(piece))) break
  work.close(usage)
  console.log(`${user}: spent ${work.used}, ${work.over} of it as debt`)
}

await answer('ada', 300, [100, 100])
await answer('ada', 100, [50], 120) // the model says at last that it was 120
await answer('ada', 100, [])
await answer('grace', 300, [300, 50])
spend.open({ team: 'math', user: 'alan' }, { expect: 300 }) // a process that dies
await answer('joan', 100, [10])
clock.advance(18_000) // nobody has renewed it: its hold has ended
await answer('joan', 100, [10])

// Prints:
//   ada: spent 200, 0 of it as debt
//   ada: spent 120, 0 of it as debt
//   ada: 429 by user, retry after 3 s
//   grace: spent 350, 0 of it as debt
//   joan: 429 by team, retry after 16 s
//   joan: spent 10, 0 of it as debt
