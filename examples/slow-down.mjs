// Requests of a busy client are delayed before they are denied. `sluicegate/express` and the others take the same options.
import { fixedWindow } from 'sluicegate'
import { rateLimit } from 'sluicegate/fetch'

const limit = rateLimit({
  policy: fixedWindow({ limit: 5, window: '1h', name: 'hour' }),
  slowDown: { after: 2, delay: (over) => over * 300, maxDelay: '5s' },
  key: (request) => request.headers.get('x-user'),
})
const handler = limit.wrap(() => new Response('hello'))

for (let i = 1; i <= 6; i++) {
  const startMs = performance.now()
  const { status } = await handler(new Request('http://localhost/', { headers: { 'x-user': 'ada' } }))
  const delay = performance.now() - startMs > 290 ? 'later' : 'at once'
  console.log(i, status, delay)
}

// Prints:
//   1 200 at once
//   2 200 at once
//   3 200 later
//   4 200 later
//   5 200 later
//   6 429 at once
