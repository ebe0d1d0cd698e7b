// Several limits on one request: charged to all of them, or to none.
import { allOf, createLimiter, fixedWindow, tokenBucket } from 'sluicegate'

const perUser = tokenBucket({ limit: 2, window: '1h', name: 'user' })
const perTeam = fixedWindow({ limit: 3, window: 'day', name: 'team' })
const limiter = createLimiter(allOf([perUser, perTeam]))

function request(user, team) {
  const { allowed, policy, parts } = limiter.take([user, team])
  const left = parts.map((part) => `${part.policy} ${part.remaining}`).join(', ')
  console.log(user, allowed ? 'passes' : `is denied by ${policy}`, `(${left})`)
}

request('ada', 'math')
request('ada', 'math')
request('ada', 'math')
request('grace', 'math')
request('grace', 'math')

// Prints:
//   ada passes (user 1, team 2)
//   ada passes (user 0, team 1)
//   ada is denied by user (user 0, team 1)
//   grace passes (user 1, team 0)
//   grace is denied by team (user 1, team 0)
